package sqlitelock

import (
	sqldriver "database/sql/driver"

	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// maxBatch is the most names that one transaction changes: enough to share its cost,
// and few enough that other processes do not wait long.
const maxBatch = 256

// Update implements locktable.Table.
func (t *table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for start := 0; start < len(steps); start += maxBatch {
		part := steps[start:min(start+maxBatch, len(steps))]
		step := func(i int, e *locktable.Entry, now locktable.Instant) bool { f(start+i, e, now); return true }
		if err := t.transact(ctx, part, step); err != nil {
			return t.driverError("write", err)
		}
	}
	return nil
}

// UpdateAll implements locktable.Grouped.
func (t *table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	return t.driverError("write", t.transact(ctx, steps, f))
}

// transact runs f on some entries in one transaction, which f may end early. It delivers
// the signals for this driver after it has left the writer, because a listener may call
// the driver again at once.
func (t *table) transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	result, err := t.runTransaction(ctx, steps, f)
	if err != nil {
		return err
	}
	for _, inbox := range result.sentTo {
		t.socket.wake(inbox)
	}
	for _, s := range result.signals {
		t.deliver(s)
	}
	return nil
}

// runTransaction runs f on some entries in one transaction, with the writer.
func (t *table) runTransaction(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) (result outcome, _ error) {
	w, err := t.writer.enter(ctx, t.busyTimeout)
	if err != nil {
		return result, err
	}
	defer t.writer.leave()
	if err := t.files.check(w); err != nil {
		return result, err
	}
	try := func() error {
		result = outcome{}
		return w.transaction(func() error { return t.runSteps(ctx, w, &result, steps, f) })
	}
	err = t.retry(ctx, try)
	// After a checkpoint, SQLite reuses the space of the log, unless another connection
	// reads from the log at that moment.
	for n := 0; isFull(err) && n < fullDiskTries && w.checkpoint() == nil; n++ {
		if err = t.retry(ctx, try); isFull(err) && t.pause(ctx, n) != nil {
			break
		}
	}
	if err != nil {
		return result, err
	}
	if len(result.holders) > 0 {
		// If a holder cannot wake this driver, the driver has to poll often, so that it
		// gets the name soon after the release.
		t.holdersCanWake.Store(!slices.ContainsFunc(result.holders, func(inbox string) bool { return !t.socket.reaches(inbox) }))
	}
	t.runPeriodicWork(w)
	return result, nil
}

// runPeriodicWork does the periodic work for which no caller waits. If it fails, a later
// call or another process repeats it.
func (t *table) runPeriodicWork(w *conn) {
	if rand.N(t.tidyEvery) == 0 {
		_ = w.transaction(func() error { return w.tidy(t.now(), t.Retention) })
	}
	if size := t.files.logSize(); size > longLogSize {
		for n := 0; !w.restartLog() && size > 2*longLogSize && n < logRestartTries; n++ {
			if t.pause(context.Background(), n) != nil {
				return
			}
		}
	}
}

// logRestartTries is the number of times that runPeriodicWork tries to restart a very
// long log while other processes write. The tries take about 20 ms together.
const logRestartTries = 16

// fullDiskTries is the number of retries of a step on a full disk. The retries take about
// 3 ms together, because other processes wait for this writer. Most readers that prevent
// SQLite from reusing the log end sooner.
const fullDiskTries = immediateTries + 5

// outcome has the results of a transaction that concern this driver.
type outcome struct {
	signals []driver.Signal // for this driver
	sentTo  []string        // the inboxes that got signals
	holders []string        // the inboxes of the holders that this driver waits for
}

// runSteps runs the steps inside a transaction. It checks the deadline before each step,
// and not later, because a transaction that has the write lock is not delayed any more.
func (t *table) runSteps(ctx context.Context, w *conn, result *outcome, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	now := t.now()
	for i, s := range steps {
		if s.HasEnd && ctx.Err() != nil {
			return ctx.Err()
		}
		more := true
		e, changes, err := w.runStep(s, now, func(e *locktable.Entry) { more = f(i, e, now) })
		if err != nil {
			return err
		}
		result.recordHolders(e, changes, t.inbox)
		for _, s := range e.Signals {
			if s.Inbox == t.inbox {
				result.signals = append(result.signals, s.Signal)
				continue
			}
			if err := w.exec(insertSignal, s.Inbox, s.Token[:], int64(s.Kind), int64(s.Fence), int64(s.Fences), int64(now)); err != nil {
				return err
			}
			result.sentTo = append(result.sentTo, s.Inbox)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// runStep runs f on an entry, and stores the entry if f changed it.
func (c *conn) runStep(s locktable.Step, now locktable.Instant, f func(e *locktable.Entry)) (*locktable.Entry, locktable.QueueChanges, error) {
	stored, err := c.storedEntry(s.Name)
	if err != nil {
		return nil, locktable.QueueChanges{}, err
	}
	e, changes, err := locktable.WithRows(c, s, stored, now, func(e *locktable.Entry) error { f(e); return nil })
	if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt {
		err = fmt.Errorf("the row of %s: %w", quote(s.Name), err)
	}
	if err != nil || !e.Changed {
		return e, changes, err
	}
	if c.buffer = e.Append(c.buffer[:0]); !bytes.Equal(c.buffer, stored) {
		err = c.exec(upsertEntry, []byte(s.Name), c.buffer)
	}
	return e, changes, err
}

// storedEntry reads the stored form of an entry, which is empty if the name has no row.
func (c *conn) storedEntry(name string) (stored []byte, err error) {
	err = c.forEachRow(selectEntry, func(row []sqldriver.Value) {
		if stored, _ = row[0].([]byte); len(stored) == 0 {
			stored = []byte{0} // an operator edited it; an invalid entry does not count as free
		}
	}, []byte(name))
	return stored, err
}

// transaction runs f in a transaction that excludes every other writer from its
// beginning. It rolls back after an error, and even if f panics, because an open
// transaction would block every other writer.
func (c *conn) transaction(f func() error) error {
	err := c.exec(beginImmediate)
	if code(err) == sqlite3.SQLITE_ERROR { // a transaction is still open: its rollback failed
		_ = c.exec("ROLLBACK")
		err = c.exec(beginImmediate)
	}
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_ = c.exec("ROLLBACK") // fails if SQLite has rolled back already
		}
	}()
	if err := f(); err != nil {
		return err
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	done = true
	return nil
}

const (
	beginImmediate = "BEGIN IMMEDIATE"
	selectEntry    = "SELECT entry FROM entries WHERE name = ?"
	upsertEntry    = "INSERT INTO entries (name, entry) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET entry = excluded.entry"
)

// checkpoint copies the log into the database, so that SQLite can reuse the log.
func (c *conn) checkpoint() error {
	return c.forEachRow("PRAGMA wal_checkpoint", func([]sqldriver.Value) {})
}

// restartLog copies the log while it excludes all other connections, and reports whether
// it succeeded. SQLite's own checkpoints do not exclude other connections. If several
// processes write all the time, such checkpoints never finish, and the log grows.
func (c *conn) restartLog() (done bool) {
	// The first column is not 0 if a connection is busy.
	err := c.forEachRow("PRAGMA wal_checkpoint(TRUNCATE)", func(row []sqldriver.Value) { done = row[0] == int64(0) })
	return done && err == nil
}
