package postgreslock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// function is what Transact runs on the entry of each step.
type function func(i int, e *locktable.Entry, now locktable.Instant) bool

// Transact implements optimistic.Transactor. A transaction locks the rows of all names,
// asks the time, writes, sends the signals, and commits.
func (s *store) Transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.Name
	}
	if len(steps) == 1 && steps[0].Place && s.keep(ctx, steps[0], f) {
		return nil
	}
	slices.Sort(names) // two transactions that want the same names do not wait for each other
	names = slices.Compact(names)
	for _, name := range names {
		if err := s.turns.Enter(ctx, name); err != nil {
			return err
		}
		defer s.turns.Leave(name)
	}
	if err := s.untilDone(ctx, steps, names, f); err != nil {
		return s.failure(ctx, err)
	}
	s.tidyNowAndThen()
	return nil
}

// patience bounds the repeating when the caller's ctx has no deadline.
const patience = 10 * time.Second

// How long a transaction waits for a row. Other clients that take a step on it are done
// within shortWait, mostly. What takes longer is a transaction that checked a lease, or a
// crowd of them. Few transactions at a time wait for the end of that, in the order of
// their coming. A transaction of several names never waits for long: it would keep the
// rows that it has from everybody else.
const (
	shortWait = 50 * time.Millisecond
	longWait  = patience
)

// untilDone repeats the transaction while others are in its way.
func (s *store) untilDone(ctx context.Context, steps []locktable.Step, names []string, f function) error {
	began := time.Now()
	for n := 0; ; n++ {
		signals, err := s.transact(ctx, steps, names, f, shortWait)
		locked := isLocked(err)
		if locked && len(names) == 1 {
			if signals, err = s.waits(ctx, steps, names, f, err); isLocked(err) {
				return err
			}
			locked = false
		}
		if err == nil {
			for _, signal := range signals {
				s.deliver(signal)
			}
			return nil
		}
		if !locked && !passing(err) && !s.hush.begins(err) || time.Since(began) > patience {
			return err
		}
		pause := time.NewTimer(backoff.Around(backoff.Doubled(time.Millisecond, n, 64*time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-s.closing.Done():
		}
		pause.Stop()
		if ended := cmp.Or(ctx.Err(), s.closing.Err()); ended != nil {
			return fmt.Errorf("%w (%w)", ended, err)
		}
	}
}

// waits takes steps of one name once more, and waits in line for its row. A renewal does
// so only if there is room: the client sends it again, and others are due.
func (s *store) waits(ctx context.Context, steps []locktable.Step, names []string, f function, why error) ([]driver.Signal, error) {
	if ctx.Value(renewing{}) != nil {
		select {
		case s.room <- struct{}{}:
		default:
			return nil, why
		}
	} else {
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return nil, why
		case <-s.closing.Done():
			return nil, why
		}
	}
	defer func() { <-s.room }()
	wait := longWait
	if end, ok := ctx.Deadline(); ok { // it shall say what it waited for, before the ctx ends
		wait = max(shortWait, min(wait, time.Until(end)*3/4))
	}
	return s.transact(ctx, steps, names, f, wait)
}

// renewing is the key of a ctx, with any value, under which leases are renewed.
type renewing struct{}

// transact takes some steps in one transaction, which f may end early. It returns the
// signals for this client.
func (s *store) transact(ctx context.Context, steps []locktable.Step, names []string, f function, wait time.Duration) ([]driver.Signal, error) {
	tx, err := s.begin(ctx, wait)
	if err != nil {
		return nil, err
	}
	defer tx.end() // also if f panics
	w := &work{tx: tx, rows: make(map[string]*row, len(names))}
	if err := w.lock(names); err != nil {
		return nil, err
	}
	end, err := latest(ctx, w.now, steps)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		goesOn := true
		if err := w.run(step, func(e *locktable.Entry) { goesOn = f(i, e, w.now) }); err != nil {
			return nil, err
		}
		if !goesOn {
			break
		}
	}
	return w.own, w.finish(end)
}

// work is one transaction under way. It implements locktable.Rows.
type work struct {
	*tx
	now   locktable.Instant // the server's time; all rows were locked by then
	rows  map[string]*row
	moved bool // waiters were changed

	own    []driver.Signal    // for this client
	others []locktable.Signal // for others
}

// row is an entry under way.
type row struct {
	stored   []byte
	inserted bool             // by this transaction
	changed  *locktable.Entry // nil if it was not
}

// lock reads the rows of all names, and locks them.
func (w *work) lock(names []string) error {
	inserted := map[string]bool{}
	for range 10 {
		if err := w.lockThose(names, inserted); err != nil {
			return err
		}
		if len(w.rows) == len(names) {
			return nil
		}
		for _, name := range names {
			if w.rows[name] != nil {
				continue
			}
			n, err := w.exec(w.store.sql.insert, []byte(name), newVersion())
			if err != nil {
				return err
			}
			if n > 0 {
				inserted[name] = true
			}
		}
		clear(w.rows)
	}
	return errors.New("rows that were inserted are not there")
}

func (w *work) lockThose(names []string, inserted map[string]bool) error {
	n := 1
	for n < len(names) {
		n *= 4 // few statements, whatever the number of names
	}
	args := make([]any, n)
	for i := range args {
		args[i] = []byte(names[min(i, len(names)-1)])
	}
	var name, stored []byte
	var now int64
	asked := time.Now()
	err := w.query([]any{&name, &stored, &now}, func() error {
		r := &row{stored: stored, inserted: inserted[string(name)]}
		if len(r.stored) == 0 && !r.inserted {
			r.stored = []byte{0} // somebody edited it: no entry, and not a free name either
		}
		w.rows[string(name)], w.now = r, max(w.now, locktable.Instant(now))
		return nil
	}, w.store.sql.lock(n), args...)
	// A long wait for a row says nothing of how long an answer takes.
	if received := time.Now(); err == nil && w.now != 0 && received.Sub(asked) < 100*time.Millisecond {
		w.store.clock.Learn(w.now, asked, received)
	}
	return err
}

// newVersion draws the version of a value. It is drawn and not counted, so that no two
// values of a name ever have the same: even if the name was forgotten and came again, or
// the server has an older state back, from a backup or by a fail-over.
func newVersion() int64 { return 1 + rand.Int64N(1<<62) }

// latest is when the steps end, on the server's clock (it is at is), or a little before,
// see driver.End; the end of all time if they have no end. The rows are locked by now: a
// transaction that asks for them later comes after this one.
func latest(ctx context.Context, is locktable.Instant, steps []locktable.Step) (locktable.Instant, error) {
	if !slices.ContainsFunc(steps, func(s locktable.Step) bool { return s.OnTime }) {
		return math.MaxInt64, nil
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now, end := time.Now(), driver.End(ctx)
	if !now.Before(end) {
		return 0, context.DeadlineExceeded
	}
	return engine.ServerTime{At: now, Is: is}.By(end), nil
}

func (w *work) run(s locktable.Step, f func(e *locktable.Entry)) error {
	r := w.rows[s.Name]
	e, _, err := locktable.Apart(w, s, r.stored, w.now, f)
	if err != nil {
		if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt {
			err = fmt.Errorf("the row of %.80q: %w", s.Name, err)
		}
		return err
	}
	for _, s := range e.Signals {
		if s.Inbox == w.store.inbox {
			w.own = append(w.own, s.Signal)
		} else {
			w.others = append(w.others, s)
		}
	}
	if !e.Changed {
		return nil
	}
	if stored := e.Append(nil); !bytes.Equal(stored, r.stored) {
		r.stored, r.changed = stored, e
	}
	return nil
}

// finish stores what has changed, sends the signals, and commits, unless the server's
// clock is past the end of the steps. The COMMIT is sent with the rest if they have no
// end. Otherwise the client sends it after the server has said that it was in time: no
// transaction can have the rows in between, so the next one finds them changed.
func (w *work) finish(end locktable.Instant) error {
	var updates, last pgx.Batch
	for name, r := range w.rows {
		switch {
		case r.changed != nil:
			updates.Queue(w.store.sql.update, append([]any{[]byte(name), int64(end)}, columnsOf(newVersion(), r.stored, r.changed)...)...)
		case r.inserted:
			last.Queue(w.store.sql.remove, []byte(name))
		}
	}
	switch {
	case updates.Len() == 0 && !w.moved:
		return nil // all is undone
	case end == math.MaxInt64:
		last.QueuedQueries = append(last.QueuedQueries, updates.QueuedQueries...)
	default:
		late := false
		for _, update := range updates.QueuedQueries {
			update.Exec(func(done pgconn.CommandTag) error { late = late || done.RowsAffected() == 0; return nil })
		}
		if err := w.send(&updates); err != nil {
			return err
		}
		if late {
			return context.DeadlineExceeded
		}
	}
	if len(w.others) > 0 && !w.store.hush.kept() {
		calls, args := notifications(w.others, 1)
		last.Queue("SELECT "+calls, args...)
	}
	return w.commit(&last)
}

// The two statements that begin a transaction as a step needs it, whatever the defaults
// of the database are. Nobody waits for long for a client that hangs in the middle.
const (
	begin  = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	bounds = "SELECT pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('idle_in_transaction_session_timeout', '5s', true)"
)

// tx is a transaction of mostly two round trips: what begins it is sent with its first
// query, and what commits it with its last change.
type tx struct {
	store *store
	ctx   context.Context
	conn  *pgx.Conn
	free  func()        // nil once the connection was given back
	wait  time.Duration // for a row
	began bool
}

func (s *store) begin(ctx context.Context, wait time.Duration) (*tx, error) {
	c, free, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{store: s, ctx: ctx, conn: c, free: free, wait: wait}, nil
}

// query runs a query, scans each row of its answer, and calls row then. The first query
// of a transaction begins it.
func (t *tx) query(into []any, row func() error, sql string, args ...any) error {
	if t.began {
		rows, _ := t.conn.Query(t.ctx, sql, args...) // ForEachRow has its error
		_, err := pgx.ForEachRow(rows, into, row)
		return err
	}
	t.began = true
	var all pgx.Batch
	all.Queue(begin)
	all.Queue(bounds, strconv.FormatInt(t.wait.Milliseconds(), 10))
	all.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, row)
		return err
	})
	return t.send(&all)
}

// exec runs a statement, and returns how many rows it has changed.
func (t *tx) exec(sql string, args ...any) (int, error) {
	tag, err := t.conn.Exec(t.ctx, sql, args...)
	t.store.ended(t.ctx, t.conn, err)
	return int(tag.RowsAffected()), err
}

// send runs several statements in one round trip.
func (t *tx) send(all *pgx.Batch) error {
	err := t.conn.SendBatch(t.ctx, all).Close()
	t.store.ended(t.ctx, t.conn, err)
	return err
}

// commit runs some last statements, and commits.
func (t *tx) commit(last *pgx.Batch) error {
	last.Queue("COMMIT")
	if err := t.send(last); err != nil {
		return err
	}
	t.free()
	t.free = nil
	return nil
}

// end undoes the transaction, unless it was committed. The caller waits for it only once
// Close has begun.
func (t *tx) end() {
	if t.free == nil {
		return
	}
	t.store.running.Go(func() {
		undo(t.conn)
		t.free()
	})
}
