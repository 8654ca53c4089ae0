package postgreslock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// A statement changes a row if the row still has the version that the client read, and
// the server's clock is within the window.
//
// PostgreSQL checks this condition before it waits for a row that another transaction has
// locked. It checks again only if that transaction has changed the row. So the statement
// reads the clock again after its change. If the window is over, the statement fails, and
// changes nothing.

// shortWait bounds how long a statement waits for a row. The steps of other clients
// mostly end within that time. A transaction that checked a lease, or a crowd of such
// transactions, takes longer: see waits.
const shortWait = 10 * time.Millisecond

// Swap implements swap.Store.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.tidier.NoteSwap()
	if len(swaps) > 1 {
		return s.swapTogether(ctx, swaps)
	}
	done, err := s.swapOne(ctx, swaps[0], shortWait, s.request)
	if isLocked(err) {
		done, err = s.waits(ctx, swaps[0], err)
	}
	switch {
	case isLocked(err) && ctx.Err() == nil:
		done = swap.Swapped{Err: s.failed(err)}
	case err != nil:
		return nil, s.failure(ctx, err)
	}
	return []swap.Swapped{done}, nil
}

// swapOne makes one swap, with a connection that ask gives.
func (s *store) swapOne(
	ctx context.Context, w swap.Swap, wait time.Duration, ask func(ctx context.Context, f func(r *request) error) error,
) (done swap.Swapped, err error) {
	err = ask(ctx, func(r *request) error {
		one, err := s.swap(r.ctx, r.conn, w, wait)
		s.answer(r, w, one, func() { done = one })
		return err
	})
	return done, err
}

// answer passes the result of a swap to its caller. If the caller has gone, answer
// delivers the signals for this client, which the caller delivers otherwise.
func (s *store) answer(r *request, w swap.Swap, one swap.Swapped, pass func()) {
	if r.whileAwaited(pass) == nil || !one.Done {
		return
	}
	for _, to := range w.Entry.Signals {
		if to.Inbox == s.inbox {
			s.deliver(to.Signal)
		}
	}
}

// waits makes a swap once more whose row was locked, and waits in line for the row until
// the window ends. If it is late then, the next window is wider, so a step that has to
// wait for many others gets its turn. Only a few swaps at a time wait in line. A renewal
// does not wait for that: the client repeats it, and has others to send.
func (s *store) waits(ctx context.Context, w swap.Swap, why error) (swap.Swapped, error) {
	if ctx.Value(renewing{}) != nil {
		select {
		case s.room <- struct{}{}:
		default:
			return swap.Swapped{}, why
		}
	} else {
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return swap.Swapped{}, why
		case <-s.closing.Done():
			return swap.Swapped{}, why
		}
	}
	wait, last := s.left(w.Window), false
	if end, ok := ctx.Deadline(); ok { // so that the error comes before ctx ends, and names the lock
		if most := time.Until(end) * 3 / 4; most < wait {
			wait, last = most, true
		}
	}
	wait = max(wait, shortWait)
	done, err := s.swapOne(ctx, w, wait, func(ctx context.Context, f func(r *request) error) error {
		// The caller may go before the row is free. The connection stays in use.
		return s.aside(ctx, wait+answerTimeout, func() { <-s.room }, f)
	})
	if isLocked(err) && !last {
		s.clock.OutsideWindow(w.Window)
		return swap.Swapped{OutsideWindow: true}, nil
	}
	return done, err
}

// renewing is the key that marks the ctx of a renewal.
type renewing struct{}

// left is the time until a window is over.
func (s *store) left(w swap.Window) time.Duration {
	is, ok := s.clock.Window(time.Now())
	if !ok {
		return 0
	}
	return is.From.Until(w.To)
}

// swap makes one swap. If the row stays locked for the time wait, that is an error.
func (s *store) swap(ctx context.Context, c *pgx.Conn, w swap.Swap, wait time.Duration) (done swap.Swapped, err error) {
	text := s.sql.swapOne
	switch {
	case w.Version == 0:
		text = s.sql.swapNew
	case frees(w.Entry):
		text = s.sql.swapFree
	}
	version := newVersion()
	people := engine.ColumnsOf(w.Entry)
	args := []any{
		[]byte(w.Name), int64(w.Version), version, w.Value, plain(people.Holders), int64(people.Fence), moment(people.Until),
		moment(w.Window.From), moment(w.Window.To), milliseconds(wait),
	}
	calls, args := s.notifications(w.Signals, args)
	if calls != "" {
		text = "WITH done (now) AS (" + text + ") SELECT now" + calls + " FROM done"
	}
	took, err := s.change(ctx, c, w.Window, text, args)
	switch {
	case s.notifyPause.beginIfRefused(err):
		return s.swap(ctx, c, w, wait)
	case took:
		return swap.Swapped{Done: true, Version: uint64(version)}, nil
	case changedNothing(err):
		return swap.Swapped{}, nil
	case err != nil:
		return swap.Swapped{}, err
	}
	return swap.Swapped{OutsideWindow: s.past(w.Window, time.Now())}, nil
}

// change runs a statement that returns the time of its change, or nothing.
func (s *store) change(ctx context.Context, c *pgx.Conn, w swap.Window, text string, args []any) (took bool, err error) {
	sent := time.Now()
	if over := s.left(w) < 0; over {
		return false, nil // the step waited too long for a connection
	}
	rows, err := c.Query(ctx, text, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if rows.Next() {
		var now int64
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &now
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
		took = true
		s.clock.InsideWindow(w)
		if received := time.Now(); received.Sub(sent) < slow { // a long wait for a row says nothing about the trip
			s.clock.Learn(locktable.Instant(now), sent, received)
		}
	}
	rows.Close()
	return took && rows.Err() == nil, rows.Err()
}

// changedNothing reports whether a failed statement has changed nothing, and may succeed
// from the current values.
func changedNothing(err error) bool { return passing(err) || sqlState(err) == tooLate }

// newVersion draws the version of a value at random instead of counting. So no two values
// of a name ever have the same version, even if the name was forgotten in between, or the
// server got an older state back, from a backup or by a failover.
func newVersion() int64 { return 1 + rand.Int64N(1<<62) }

// milliseconds is a lock_timeout.
func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// frees reports whether a swap only gives a name back. Such a swap does not wait for the
// disk: if the server crashes before it has written the release, the lease runs out, as
// if its holder had died. The next grant waits for the disk, and so for all earlier
// writes.
func frees(e *locktable.Entry) bool {
	return len(e.Holders) == 0 && len(e.Queue) == 0 && e.Closed == 0 && len(e.Broken) == 0 && len(e.Value.Bytes) == 0
}

// past reports whether the server's clock has left a window by now. If so, it makes the
// next window wider.
func (s *store) past(w swap.Window, now time.Time) bool {
	is, ok := s.clock.Window(now)
	if ok && is.From <= w.To {
		return false
	}
	s.clock.OutsideWindow(w)
	return true
}

// rows are the arguments of a statement that makes several swaps.
type rows struct {
	versions []int64
	window   swap.Window // all windows have it in common
	args     []any
}

// rowsOf returns the arguments for some swaps. The statement ignores those for which
// alone is true.
func rowsOf(swaps []swap.Swap, alone func(w *swap.Swap) bool) rows {
	n := len(swaps)
	names, was, versions := make([][]byte, n), make([]int64, n), make([]int64, n)
	entries, holders := make([][]byte, n), make([][]byte, n)
	fences, ends := make([]int64, n), make([]pgtype.Timestamptz, n)
	common := swaps[0].Window
	for i, w := range swaps {
		c := engine.ColumnsOf(w.Entry)
		names[i], was[i], versions[i] = []byte(w.Name), int64(w.Version), newVersion()
		entries[i], holders[i], fences[i], ends[i] = w.Value, plain(c.Holders), int64(c.Fence), moment(c.Until)
		if alone(&swaps[i]) {
			names[i] = []byte{} // matches no row
		}
		common.From, common.To = max(common.From, w.Window.From), min(common.To, w.Window.To)
	}
	return rows{versions, common, []any{names, was, versions, entries, holders, fences, ends, moment(common.From), moment(common.To)}}
}

// SwapAll implements swap.AllSwapper.
func (s *store) SwapAll(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.tidier.NoteSwap()
	all := rowsOf(swaps, func(*swap.Swap) bool { return false })
	var signals []locktable.Signal
	for _, w := range swaps {
		signals = append(signals, w.Signals...)
	}
	calls, args := s.notifications(signals, append(all.args, milliseconds(shortWait)))
	done := make([]swap.Swapped, len(swaps))
	err := s.request(ctx, func(r *request) error {
		took, err := s.change(r.ctx, r.conn, all.window, s.sql.swapAll+" SELECT now"+calls+" FROM done", args)
		late := err == nil && !took && s.past(all.window, time.Now())
		for i, w := range swaps {
			one := swap.Swapped{OutsideWindow: late}
			if took {
				one = swap.Swapped{Done: true, Version: uint64(all.versions[i])}
			}
			s.answer(r, w, one, func() { done[i] = one })
		}
		return err
	})
	switch {
	case s.notifyPause.beginIfRefused(err), changedNothing(err), isLocked(err):
		return make([]swap.Swapped, len(swaps)), nil
	case err != nil:
		return nil, s.failure(ctx, err)
	}
	return done, nil
}

// swapTogether makes many swaps. If rows are locked, it repeats their swaps after a
// moment, because another step may have locked a row only briefly.
func (s *store) swapTogether(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	done, err := s.swapAtOnce(ctx, swaps)
	for _, wait := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		var which []int
		var again []swap.Swap
		for i, d := range done {
			if errors.Is(d.Err, swap.ErrLocked) {
				which, again = append(which, i), append(again, swaps[i])
			}
		}
		if err != nil || len(which) == 0 || backoff.Wait(ctx, wait) != nil {
			break
		}
		var now []swap.Swapped
		if now, err = s.swapAtOnce(ctx, again); err != nil {
			return nil, err
		}
		for k, i := range which {
			done[i] = now[k]
		}
	}
	return done, err
}

// isAlone reports whether a swap needs a statement of its own.
func isAlone(w *swap.Swap) bool { return w.Version == 0 || len(w.Signals) > 0 }

// swapAtOnce makes many swaps in one statement, except those with new rows or signals.
func (s *store) swapAtOnce(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	all := rowsOf(swaps, isAlone)
	index := make(map[string]int, len(swaps))
	for i, w := range swaps {
		index[w.Name] = i
	}
	done := make([]swap.Swapped, len(swaps))
	err := s.do(ctx, func(r *request) error {
		sent := time.Now()
		var name []byte
		var now int64
		changed, _ := r.conn.Query(r.ctx, s.sql.swapMany, all.args...)
		_, err := pgx.ForEachRow(changed, []any{&name, &now}, func() error {
			i := index[string(name)]
			done[i] = swap.Swapped{Done: true, Version: uint64(all.versions[i])}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
		if changedNothing(err) {
			err = nil
		}
		for i := 0; i < len(swaps) && err == nil; i++ {
			if w := swaps[i]; isAlone(&w) {
				var one swap.Swapped
				if one, err = s.swap(r.ctx, r.conn, w, shortWait); isLocked(err) {
					one, err = swap.Swapped{Err: s.failed(err)}, nil
				}
				s.answer(r, w, one, func() { done[i] = one })
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var left []int
	for i := range swaps {
		if !done[i].Done && !isAlone(&swaps[i]) {
			left, done[i].Version = append(left, i), uint64(all.versions[i])
		}
	}
	// The windows have little in common if computing the swaps took long.
	window := swap.Window{From: swaps[0].Window.From, To: all.window.To}
	if len(left) > 0 && s.past(window, time.Now()) {
		for _, i := range left {
			done[i].OutsideWindow = true
		}
		return done, nil
	}
	return done, sqlswap.FindOut(ctx, s.Load, swaps, done, left, func(i int) { // another transaction has locked the row
		done[i] = swap.Swapped{Err: s.failed(skippedError{})}
	})
}

// skippedError is the server's error for a locked row, which SKIP LOCKED leaves out.
type skippedError struct{}

func (skippedError) Error() string    { return "another session has locked its row" }
func (skippedError) SQLState() string { return "55P03" }
