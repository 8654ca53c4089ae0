package sqlitelock

import (
	sqldriver "database/sql/driver"

	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// batch is how many names go into one transaction: enough to share its cost, few enough that other processes
// do not wait for long.
const batch = 256

// Update implements locktable.Table.
func (t *table) Update(ctx context.Context, names []string, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for start := 0; start < len(names); start += batch {
		some := names[start:min(start+batch, len(names))]
		step := func(i int, e *locktable.Entry, now locktable.Instant) { f(start+i, e, now) }
		if err := t.transact(ctx, some, step); err != nil {
			return t.trouble("write", err)
		}
	}
	return nil
}

// transact runs f on some entries in one transaction. Then it hands out the signals that are for this
// driver: not under the gate, for who hears one comes back at once.
func (t *table) transact(ctx context.Context, names []string, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	did, err := t.locked(ctx, names, f)
	if err != nil {
		return err
	}
	for _, inbox := range did.sentTo {
		t.bell.ring(inbox)
	}
	for _, s := range did.signals {
		t.deliver(s)
	}
	return nil
}

func (t *table) locked(ctx context.Context, names []string, f func(i int, e *locktable.Entry, now locktable.Instant)) (did outcome, _ error) {
	if err := t.enter(ctx, t.writing); err != nil {
		return did, err
	}
	defer t.writing.free()
	if err := t.files.check(); err != nil {
		return did, err
	}
	try := func() error {
		did = outcome{}
		return t.writer.transaction(func() error { return t.step(&did, names, f) })
	}
	err := t.retry(ctx, try)
	if isFull(err) && t.writer.checkpoint() == nil {
		err = t.retry(ctx, try) // the log begins again from its start, in the room that it has
	}
	if err != nil {
		return did, err
	}
	t.watch.apply(did.places, did.holds)
	t.keepHouse()
	return did, nil
}

// keepHouse does now and then what nobody waits for. What fails here is done next time, or by others.
func (t *table) keepHouse() {
	if rand.N(t.tidyEvery) == 0 {
		_ = t.writer.transaction(func() error { return t.writer.tidy(t.now(), t.Retention) })
	}
	if t.files.logIsLong() {
		_ = t.writer.restartLog()
	}
}

// outcome is what a transaction did that concerns this driver.
type outcome struct {
	signals []driver.Signal   // for this driver
	sentTo  []string          // the inboxes that others have to look into
	places  []place           // in queues, taken and left
	holds   locktable.Instant // the latest expiry of our leases
}

// step is the inside of a transaction.
func (t *table) step(did *outcome, names []string, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	now := t.now()
	for i, name := range names {
		e, err := t.writer.load(name)
		if err != nil {
			return err
		}
		did.before(e, t.inbox)
		f(i, e, now)
		did.after(e, t.inbox)
		if e.Changed {
			if err := t.writer.store(name, e); err != nil {
				return err
			}
		}
		for _, s := range e.Signals {
			if s.Inbox == t.inbox {
				did.signals = append(did.signals, s.Signal)
				continue
			}
			if err := t.writer.send(s, now); err != nil {
				return err
			}
			did.sentTo = append(did.sentTo, s.Inbox)
		}
	}
	return nil
}

// A writer is the connection that changes the file.
type writer struct {
	*conn
	begin, commit, rollback   *stmt
	selectEntry, upsertEntry  *stmt
	insertSignal, dropSignals *stmt
	selectRest, setRest       *stmt
	selectSome, deleteEntry   *stmt
	copyLog, copyWholeLog     *stmt
	entry                     []byte // the stored form under way
}

func openWriter(path string) (*writer, error) {
	c, err := connect(path)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: c}
	if err := w.setUp(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return w, nil
}

func (w *writer) setUp() error {
	if err := w.script(settings); err != nil {
		return err
	}
	if err := ensureSchema(w.conn); err != nil {
		return err
	}
	return w.prepareAll(map[**stmt]string{
		&w.begin:        "BEGIN IMMEDIATE",
		&w.commit:       "COMMIT",
		&w.rollback:     "ROLLBACK",
		&w.selectEntry:  selectEntry,
		&w.upsertEntry:  "INSERT INTO entries (name, entry) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET entry = excluded.entry",
		&w.deleteEntry:  "DELETE FROM entries WHERE name = ?",
		&w.insertSignal: "INSERT INTO signals (inbox, token, kind, fence, run, at) VALUES (?, ?, ?, ?, ?, ?)",
		&w.dropSignals:  dropSignals,
		&w.selectSome:   selectSome,
		&w.selectRest:   "SELECT cursor, rest FROM tidying",
		&w.setRest:      "UPDATE tidying SET cursor = ?, rest = ?",
		&w.copyLog:      "PRAGMA wal_checkpoint",
		&w.copyWholeLog: "PRAGMA wal_checkpoint(TRUNCATE)",
	})
}

// transaction runs f in a transaction that excludes every other writer from its beginning, and undoes it if
// anything fails, f's panic included: an open transaction would stop every process.
func (w *writer) transaction(f func() error) error {
	if err := w.begin.exec(); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_ = w.rollback.exec() // it fails when SQLite has rolled back already
		}
	}()
	if err := f(); err != nil {
		return err
	}
	if err := w.commit.exec(); err != nil {
		return err
	}
	done = true
	return nil
}

// load reads an entry. One that cannot be decoded is an error: never an empty entry, which all could have.
func (w *writer) load(name string) (*locktable.Entry, error) { return loadEntry(w.selectEntry, name) }

const selectEntry = "SELECT entry FROM entries WHERE name = ?"

func loadEntry(s *stmt, name string) (*locktable.Entry, error) {
	e := &locktable.Entry{}
	var corrupt error
	err := s.each(func(row []sqldriver.Value) {
		e, corrupt = decode(row[0])
	}, []byte(name))
	switch {
	case err != nil:
		return nil, err
	case corrupt != nil:
		return nil, fmt.Errorf("the row of %s: %w", quote(name), corrupt)
	}
	return e, nil
}

// decode reads a column, which somebody may have edited to be no blob.
func decode(column sqldriver.Value) (*locktable.Entry, error) {
	b, _ := column.([]byte)
	return locktable.Decode(b)
}

func (w *writer) store(name string, e *locktable.Entry) error {
	w.entry = e.Append(w.entry[:0])
	return w.upsertEntry.exec([]byte(name), w.entry)
}

// checkpoint copies the log into the database, so that the log can begin again.
func (w *writer) checkpoint() error {
	return w.copyLog.each(func([]sqldriver.Value) {})
}

// restartLog copies the log with all others shut out. SQLite's own checkpoints give way, so that when several
// processes write all the time none ever ends, and the log would grow for ever.
func (w *writer) restartLog() error {
	return w.copyWholeLog.each(func([]sqldriver.Value) {})
}
