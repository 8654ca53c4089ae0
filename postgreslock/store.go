package postgreslock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/turns"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// A store keeps a row for each name. Most steps are a single statement. It changes a row
// if the row still has the version that the client read, and the server's clock is within
// the window. No transaction stays open while a client does anything else.
//
// PostgreSQL checks this condition before it waits for a row that another transaction has
// locked. It checks again only if that transaction has changed the row. So the statement
// reads the clock again after its change. If the window is over, the statement fails, and
// changes nothing.
//
// The other steps take a transaction: see Transact.
type store struct {
	*server
	clock       optimistic.Clock
	notifyPause notifyPause
	sql         *statements
	listener    *listener
	inbox       string              // the inbox of this client
	deliver     func(driver.Signal) // takes the signals for this client

	turns     turns.Turns   // lets one transaction of this process per name run; the others wait without a connection
	room      chan struct{} // bounds the transactions that wait for longWait, because each keeps a connection
	unawaited chan struct{} // bounds the requests whose caller has gone, because each keeps a connection

	lastSlow atomic.Pointer[time.Time] // the last time that a request took long

	tidying chan struct{} // holds one while a goroutine tidies
	closing context.Context
	close   context.CancelFunc
	running engine.Background
}

// newStore makes the store of a client, and its listener.
func newStore(s *server, deliver func(driver.Signal)) *store {
	t := &store{
		server: s, sql: s.options.statements(), inbox: rand.Text()[:16],
		room: make(chan struct{}, maxLongWaits(s.most())), unawaited: make(chan struct{}, s.most()*3/4), tidying: make(chan struct{}, 1),
	}
	t.deliver = func(signal driver.Signal) {
		t.listener.claims.Heard(signal)
		deliver(signal)
	}
	t.closing, t.close = context.WithCancel(context.Background())
	t.listener = newListener(t, t.inbox, t.deliver)
	return t
}

// maxLongWaits returns the number of connections of a pool that may wait long for locked
// rows.
func maxLongWaits(connections int) int { return max(1, connections/4) }

// changedNothing reports whether a failed swap has changed nothing, so that Transact
// takes the step.
func changedNothing(err error) bool { return passing(err) || isLocked(err) || sqlState(err) == tooLate }

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	all := make([]optimistic.Stored, len(names))
	err := s.do(ctx, func(r *request) error {
		sent := time.Now()
		var i, now int64
		var version sql.NullInt64
		var value []byte
		rows, _ := r.conn.Query(r.ctx, s.sql.load, bytesOf(names)) // ForEachRow returns its error
		_, err := pgx.ForEachRow(rows, []any{&i, &version, &value, &now}, func() error {
			if version.Valid {
				all[i-1] = optimistic.Stored{Value: value, Version: uint64(version.Int64)}
				if len(value) == 0 {
					all[i-1].Value = []byte{0} // an operator edited it: make it invalid, not a free name
				}
			}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// bytesOf returns names as arguments, see text.
func bytesOf(names []string) [][]byte {
	all := make([][]byte, len(names))
	for i, name := range names {
		all[i] = []byte(name)
	}
	return all
}

// Time implements optimistic.Store.
func (s *store) Time(ctx context.Context) (optimistic.Window, error) {
	return s.clock.Ask(ctx, func(ctx context.Context) error {
		return s.do(ctx, func(r *request) error { _, err := s.ask(r.ctx, r.conn); return err })
	})
}

func (s *store) ask(ctx context.Context, c *pgx.Conn) (locktable.Instant, error) {
	var now int64
	sent := time.Now()
	if err := c.QueryRow(ctx, "SELECT "+clock).Scan(&now); err != nil {
		return 0, err
	}
	s.clock.Learn(locktable.Instant(now), sent, time.Now())
	return locktable.Instant(now), nil
}

// Swap implements optimistic.Store.
func (s *store) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	s.tidyNowAndThen()
	if len(swaps) > 1 {
		return s.swapTogether(ctx, swaps)
	}
	done := make([]optimistic.Swapped, 1)
	err := s.do(ctx, func(r *request) error {
		one, err := s.swap(r.ctx, r.conn, swaps[0])
		if r.whileAwaited(func() { done[0] = one }) != nil && one.Done {
			s.deliverOwn(swaps[0].Entry.Signals)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// deliverOwn delivers the signals of a step that are for this client. Usually the caller
// of the step delivers them; deliverOwn replaces a caller that has gone.
func (s *store) deliverOwn(signals []locktable.Signal) {
	for _, to := range signals {
		if to.Inbox == s.inbox {
			s.deliver(to.Signal)
		}
	}
}

func (s *store) swap(ctx context.Context, c *pgx.Conn, w optimistic.Swap) (done optimistic.Swapped, err error) {
	text := s.sql.swapOne
	switch {
	case w.Version == 0:
		text = s.sql.swapNew
	case frees(w.Entry):
		text = s.sql.swapFree
	}
	version := newVersion()
	args := append([]any{[]byte(w.Name), int64(w.Version)}, columnsOf(version, w.Value, w.Entry)...)
	args = append(args, moment(w.Window.From), moment(w.Window.To))
	if len(w.Signals) > 0 && !s.notifyPause.isActive() {
		calls, more := notifications(w.Signals, len(args)+1)
		text = "WITH done (now) AS (" + text + ") SELECT now, " + calls + " FROM done"
		args = append(args, more...)
	}
	sent := time.Now()
	if s.past(w.Window, sent) {
		return optimistic.Swapped{Late: true}, nil // the step waited too long for a connection
	}
	rows, err := c.Query(ctx, text, args...)
	switch {
	case s.notifyPause.beginIfRefused(err):
		return s.swap(ctx, c, w)
	case changedNothing(err):
		return done, nil
	case err != nil:
		return done, err
	}
	defer rows.Close()
	if rows.Next() {
		var now int64
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &now
		if err := rows.Scan(into...); err != nil {
			return done, err
		}
		done.Done, done.Version = true, uint64(version)
		s.clock.InTime(w.Window)
		s.clock.Learn(locktable.Instant(now), sent, time.Now())
	}
	rows.Close()
	switch err := rows.Err(); {
	case s.notifyPause.beginIfRefused(err):
		return s.swap(ctx, c, w)
	case changedNothing(err):
		return optimistic.Swapped{}, nil
	case err != nil || done.Done:
		return done, err
	}
	done.Late = s.past(w.Window, time.Now())
	return done, nil
}

// frees reports whether a swap only gives a name back. Such a swap does not wait for the
// disk: if the server crashes before it has written the release, the lease runs out, as
// if its holder had died. The next grant waits for the disk, and so for all earlier
// writes.
func frees(e *locktable.Entry) bool {
	return len(e.Holders) == 0 && len(e.Queue) == 0 && e.Closed == 0 && len(e.Broken) == 0 && len(e.Value.Bytes) == 0
}

// past reports whether the server's clock has left a window by now. If so, it makes the
// next window wider.
func (s *store) past(w optimistic.Window, now time.Time) bool {
	is, ok := s.clock.Window(now)
	if ok && is.From <= w.To {
		return false
	}
	s.clock.Late(w)
	return true
}

// swapTogether makes many swaps. If rows are locked, it repeats their swaps after a
// moment, because another step may have locked a row only briefly.
func (s *store) swapTogether(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	done, err := s.swapAtOnce(ctx, swaps)
	for _, wait := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		var which []int
		var again []optimistic.Swap
		for i, d := range done {
			if errors.Is(d.Err, optimistic.ErrLocked) {
				which, again = append(which, i), append(again, swaps[i])
			}
		}
		if err != nil || len(which) == 0 || backoff.Wait(ctx, wait) != nil {
			break
		}
		var now []optimistic.Swapped
		if now, err = s.swapAtOnce(ctx, again); err != nil {
			return nil, err
		}
		for k, i := range which {
			done[i] = now[k]
		}
	}
	return done, err
}

// swapAtOnce makes many swaps in one statement, except those with new rows or signals.
func (s *store) swapAtOnce(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	n := len(swaps)
	names, was, versions := make([][]byte, n), make([]int64, n), make([]int64, n)
	entries, holders := make([][]byte, n), make([][]byte, n)
	fences, ends := make([]int64, n), make([]pgtype.Timestamptz, n)
	index := make(map[string]int, n)
	from, to := swaps[0].Window.From, swaps[0].Window.To
	for i, w := range swaps {
		c := engine.ColumnsOf(w.Entry)
		names[i], was[i], versions[i] = []byte(w.Name), int64(w.Version), newVersion()
		entries[i], holders[i], fences[i], ends[i] = w.Value, plain(c.Holders), int64(c.Fence), moment(c.Until)
		if w.Version == 0 || len(w.Signals) > 0 {
			names[i] = []byte{} // matches no row: Transact takes the step
		}
		index[w.Name], from, to = i, max(from, w.Window.From), min(to, w.Window.To)
	}
	done := make([]optimistic.Swapped, n)
	err := s.do(ctx, func(r *request) error {
		sent := time.Now()
		var name []byte
		var now int64
		rows, _ := r.conn.Query(r.ctx, s.sql.swapMany, names, was, versions, entries, holders, fences, ends, moment(from), moment(to))
		_, err := pgx.ForEachRow(rows, []any{&name, &now}, func() error {
			i := index[string(name)]
			done[i] = optimistic.Swapped{Done: true, Version: uint64(versions[i])}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
		return err
	})
	switch {
	case changedNothing(err):
		return make([]optimistic.Swapped, n), nil
	case err != nil:
		return nil, err
	}
	// The windows have little in common if computing the swaps took long.
	window := optimistic.Window{From: swaps[0].Window.From, To: to}
	switch all := !slices.ContainsFunc(done, func(d optimistic.Swapped) bool { return !d.Done }); {
	case all:
	case s.past(window, time.Now()):
		for i := range done {
			done[i].Late = !done[i].Done
		}
	default:
		err = s.explain(ctx, swaps, done)
	}
	return done, err
}

// explain loads the stored values for the swaps that changed nothing. If a row has not
// changed, another transaction has locked it.
func (s *store) explain(ctx context.Context, swaps []optimistic.Swap, done []optimistic.Swapped) error {
	var names []string
	var which []int
	for i, w := range swaps {
		if !done[i].Done && w.Version != 0 && len(w.Signals) == 0 {
			names, which = append(names, w.Name), append(which, i)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all, err := s.Load(ctx, names)
	if err != nil {
		return err
	}
	for k, i := range which {
		if done[i].Known, done[i].Now = true, all[k]; all[k].Version == swaps[i].Version {
			done[i] = optimistic.Swapped{Err: s.failed(skippedError{})}
		}
	}
	return nil
}

// skippedError is the server's error for a locked row, which SKIP LOCKED leaves out.
type skippedError struct{}

func (skippedError) Error() string    { return "another session has locked its row" }
func (skippedError) SQLState() string { return "55P03" }

// do runs f with a connection, and turns a failure into an error of this driver, see
// request and failure.
func (s *store) do(ctx context.Context, f func(r *request) error) error {
	return s.failure(ctx, s.request(ctx, f))
}

// failure turns a failure of the server into a [*driver.Error]. It returns the end of the
// caller's ctx, and damage to an entry, as they are. If the pool was exhausted until ctx
// ended, the error also has advice.
func (s *store) failure(ctx context.Context, err error) error {
	_, corrupt := errors.AsType[*locktable.CorruptError](err)
	_, exhausted := errors.AsType[exhaustedError](err)
	switch {
	case err == nil, corrupt:
		return err
	case exhausted && s.closing.Err() == nil:
		return s.failed(err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	case s.closing.Err() != nil:
		return driver.ErrClosed
	}
	return s.failed(err)
}

// Properties implements optimistic.Store.
func (s *store) Properties() driver.Properties {
	pushes := !s.options.NoPush && s.listener.pushes()
	return driver.Properties{
		Backend:       "postgres",
		Where:         s.place(),
		Clock:         driver.ClockServer,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL,
		PushesGrants:  pushes,
		PushesChanges: pushes,
	}
}

// Close implements optimistic.Store. Requests under way end by their ctx. A request whose
// caller has gone no longer waits for its answer.
func (s *store) Close() error {
	s.close()
	s.running.Close()
	return nil
}
