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

// function is the function that Transact runs on the entry of each step.
type function func(i int, e *locktable.Entry, now locktable.Instant) bool

// Transact implements optimistic.Transactor. A transaction locks the rows of all names,
// asks the time, writes, sends the signals, and commits.
func (s *store) Transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.Name
	}
	if len(steps) == 1 && steps[0].Place && s.keepPlace(ctx, steps[0], f) {
		return nil
	}
	slices.Sort(names) // in order, so that two transactions do not deadlock
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

// retryTimeout bounds the retries of a step whose ctx has no deadline.
const retryTimeout = 10 * time.Second

// These constants bound how long a transaction waits for a row. The steps of other
// clients mostly end within shortWait. A transaction that checked a lease, or a crowd of
// such transactions, takes longer. Only a few transactions at a time wait for longWait,
// first come, first served. A transaction of several names never waits for longWait:
// meanwhile no other client could use the rows that it has locked.
const (
	shortWait = 50 * time.Millisecond
	longWait  = retryTimeout
)

// untilDone repeats the transaction while other transactions are in its way.
func (s *store) untilDone(ctx context.Context, steps []locktable.Step, names []string, f function) error {
	began := time.Now()
	for n := 0; ; n++ {
		signals, err := s.transact(ctx, steps, names, f, shortWait, s.request)
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
		if !locked && !passing(err) && !s.notifyPause.beginIfRefused(err) || time.Since(began) > retryTimeout {
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

// waits takes steps of one name once more, and waits in line for the name's row. A
// renewal does not wait for room: the client repeats it, and has others to send.
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
	wait := longWait
	if end, ok := ctx.Deadline(); ok { // so that the error comes before ctx ends, and names the lock
		wait = max(shortWait, min(wait, time.Until(end)*3/4))
	}
	return s.transact(ctx, steps, names, f, wait, func(ctx context.Context, body func(r *request) error) error {
		// The caller may go before the row is free. The connection stays in use.
		return s.aside(ctx, wait+answerTimeout, func() { <-s.room }, body)
	})
}

// renewing is the key that marks the ctx of a renewal.
type renewing struct{}

// transact takes some steps in one transaction, with a connection that ask gives; f may
// end the transaction early. It returns the signals for this client.
func (s *store) transact(
	ctx context.Context, steps []locktable.Step, names []string, f function, wait time.Duration,
	ask func(ctx context.Context, body func(r *request) error) error,
) ([]driver.Signal, error) {
	var own []driver.Signal
	err := ask(ctx, func(r *request) error {
		w := &work{tx: &tx{r: r, wait: wait}, store: s, rows: make(map[string]*row, len(names))}
		err := w.take(ctx, steps, names, f)
		if r.whileAwaited(func() { own = w.own }) != nil && err == nil {
			for _, signal := range w.own {
				s.deliver(signal)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return own, nil
}

// take takes the steps: it locks the rows, asks the time, calls f, and commits.
func (w *work) take(ctx context.Context, steps []locktable.Step, names []string, f function) error {
	if err := w.lock(names); err != nil {
		return err
	}
	end, err := latest(ctx, w.now, steps)
	if err != nil {
		return err
	}
	for i, step := range steps {
		goesOn := true
		err := w.run(step, func(e *locktable.Entry) error {
			return w.r.whileAwaited(func() { goesOn = f(i, e, w.now) })
		})
		if err != nil {
			return err
		}
		if !goesOn {
			break
		}
	}
	return w.finish(end)
}

// work is one transaction under way. It implements locktable.Rows.
type work struct {
	*tx
	store *store
	now   locktable.Instant // the server's time, read after all rows were locked
	rows  map[string]*row
	moved bool // rows of waiters were changed

	own    []driver.Signal    // signals for this client
	others []locktable.Signal // signals for other clients
}

// row is an entry under way.
type row struct {
	stored   []byte
	inserted bool             // this transaction inserted the row
	changed  *locktable.Entry // nil if the entry is unchanged
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
		n *= 4 // so that few different statements serve any number of names
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
			r.stored = []byte{0} // an operator edited it: make it invalid, not a free name
		}
		w.rows[string(name)], w.now = r, max(w.now, locktable.Instant(now))
		return nil
	}, w.store.sql.lock(n), args...)
	// A long wait for a row says nothing about how long an answer takes.
	if received := time.Now(); err == nil && w.now != 0 && received.Sub(asked) < 100*time.Millisecond {
		w.store.clock.Learn(w.now, asked, received)
	}
	return err
}

// newVersion draws the version of a value at random instead of counting. So no two values
// of a name ever have the same version, even if the name was forgotten in between, or the
// server got an older state back, from a backup or by a failover.
func newVersion() int64 { return 1 + rand.Int64N(1<<62) }

// latest returns the time at which the steps end, or a little before (see driver.End), on
// the server's clock. The argument is holds that clock's time. If the steps have no end,
// latest returns the largest instant. A transaction has locked its rows by now, so one
// that locks them later comes after it.
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

func (w *work) run(s locktable.Step, f func(e *locktable.Entry) error) error {
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

// finish stores the changes, sends the signals, and commits, unless the server's clock is
// past the end of the steps. If the steps have no end, it sends the COMMIT with the rest.
// Otherwise it sends the COMMIT once the server has answered that the changes were in
// time. No transaction can lock the rows in between, so the next sees the changes.
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
		return nil // giveBack rolls back
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
	if len(w.others) > 0 && !w.store.notifyPause.isActive() {
		calls, args := notifications(w.others, 1)
		last.Queue("SELECT "+calls, args...)
	}
	return w.commit(&last)
}

// These statements begin a transaction with the settings that a step needs, whatever the
// defaults of the database. If a client hangs in the middle, the server ends its
// transaction after 5 s.
const (
	begin  = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	bounds = "SELECT pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('idle_in_transaction_session_timeout', '5s', true)"
)

// A tx is a transaction of mostly two round trips: BEGIN goes with its first query, and
// COMMIT with its last change.
type tx struct {
	r     *request
	wait  time.Duration // bound of each wait for a row
	began bool
}

// query runs a query, scans each row of its answer, and calls row after each. The first
// query of a transaction also begins it.
func (t *tx) query(into []any, row func() error, sql string, args ...any) error {
	if t.began {
		rows, _ := t.r.conn.Query(t.r.ctx, sql, args...) // ForEachRow returns its error
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
	tag, err := t.r.conn.Exec(t.r.ctx, sql, args...)
	return int(tag.RowsAffected()), err
}

// send runs several statements in one round trip.
func (t *tx) send(all *pgx.Batch) error { return t.r.conn.SendBatch(t.r.ctx, all).Close() }

// commit runs some last statements, and commits.
func (t *tx) commit(last *pgx.Batch) error {
	last.Queue("COMMIT")
	return t.send(last)
}
