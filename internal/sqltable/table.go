package sqltable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/turns"
	"github.com/pawl-go/pawl/locktable"
)

// Options are what a Table needs besides its DB.
type Options struct {
	Dialect    Dialect
	Inbox      string              // of this client
	Deliver    func(driver.Signal) // takes the signals for it
	Retention  time.Duration       // how long the last fence of a name is remembered
	Properties func() driver.Properties

	// Patient is how many transactions may wait for a row that is locked for long: each
	// keeps a connection meanwhile.
	Patient int

	// Told, if it is there, hears each time that the server says: it was asked then or
	// later, and has answered now.
	Told func(is locktable.Instant, asked, now time.Time)

	// Failed makes a *driver.Error of a failure, with what a person can do. It is not
	// asked about the end of a ctx, nor about damage.
	Failed func(err error) error
}

// Table is a locktable.Table. A step is a transaction: it locks the row, asks the time,
// writes, sends the signals, and commits.
type Table struct {
	Options
	db   DB
	sql  statements
	turn turns.Turns   // one goroutine of this process at a name, so that the others need no connection
	room chan struct{} // has room for the transactions that wait for long

	tidying chan struct{} // holds one while somebody is at it
	closing context.Context
	close   context.CancelFunc
	running engine.Background
}

// New makes a Table.
func New(db DB, o Options) *Table {
	t := &Table{Options: o, db: db, sql: o.Dialect.statements(), tidying: make(chan struct{}, 1), room: make(chan struct{}, o.Patient)}
	t.closing, t.close = context.WithCancel(context.Background())
	return t
}

// batch is how many names go into one transaction: enough to share its cost, few enough
// that others do not wait for long.
const batch = 256

// Update implements locktable.Table.
func (t *Table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	if len(steps) == 1 {
		if err := t.turn.Enter(ctx, steps[0].Name); err != nil {
			return err
		}
		defer t.turn.Leave(steps[0].Name)
	}
	for start := 0; start < len(steps); start += batch {
		some := steps[start:min(start+batch, len(steps))]
		step := func(i int, e *locktable.Entry, now locktable.Instant) bool { f(start+i, e, now); return true }
		if err := t.untilDone(ctx, some, step); err != nil {
			return t.failed(ctx, err)
		}
	}
	t.TidyNowAndThen()
	return nil
}

// UpdateAll implements locktable.Grouped.
func (t *Table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name
	}
	slices.Sort(names) // two who want the same ones do not wait for each other
	for _, name := range slices.Compact(names) {
		if err := t.turn.Enter(ctx, name); err != nil {
			return err
		}
		defer t.turn.Leave(name)
	}
	if err := t.untilDone(ctx, steps, f); err != nil {
		return t.failed(ctx, err)
	}
	t.TidyNowAndThen()
	return nil
}

// patience bounds the repeating when the caller's ctx has no deadline.
const patience = 10 * time.Second

// How long a transaction waits for a row. Others who work on it as we do are done within
// shortWait, mostly. What takes longer is somebody's transaction that checked a lease, or
// a crowd of them, and the end of that is waited for by few at a time, in the order of
// their coming. A transaction of several names never waits for long: it would keep the
// rows that it has from everybody else.
const (
	shortWait = 50 * time.Millisecond
	longWait  = patience
)

// untilDone repeats the transaction while others are in its way.
func (t *Table) untilDone(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	began := time.Now()
	alone := !slices.ContainsFunc(steps, func(s locktable.Step) bool { return s.Name != steps[0].Name })
	for n := 0; ; n++ {
		signals, err := t.transact(ctx, steps, f, shortWait)
		locked := t.Dialect.Locked(err)
		if locked && alone {
			if signals, err = t.waits(ctx, steps, f, err); t.Dialect.Locked(err) {
				return err
			}
			locked = false
		}
		if err == nil {
			for _, s := range signals {
				t.Deliver(s)
			}
			return nil
		}
		if !locked && !t.Dialect.Passing(err) || time.Since(began) > patience {
			return err
		}
		pause := time.NewTimer(backoff.Around(backoff.Doubled(time.Millisecond, n, 64*time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-t.closing.Done():
		}
		pause.Stop()
		if ended := cmp.Or(ctx.Err(), t.closing.Err()); ended != nil {
			return fmt.Errorf("%w (%w)", ended, err)
		}
	}
}

// waits takes steps of one name once more, and waits in line for its row. A renewal does
// so only if there is room: it is sent again, and others are due.
func (t *Table) waits(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool, why error) ([]driver.Signal, error) {
	if ctx.Value(Renewing{}) != nil {
		select {
		case t.room <- struct{}{}:
		default:
			return nil, why
		}
	} else {
		select {
		case t.room <- struct{}{}:
		case <-ctx.Done():
			return nil, why
		case <-t.closing.Done():
			return nil, why
		}
	}
	defer func() { <-t.room }()
	wait := longWait
	if end, ok := ctx.Deadline(); ok { // it shall say what it waited for, before the ctx ends
		wait = max(shortWait, min(wait, time.Until(end)*3/4))
	}
	return t.transact(ctx, steps, f, wait)
}

// Renewing is the key of a ctx, with any value, under which leases are renewed.
type Renewing struct{}

// transact takes some steps in one transaction, which f may end early. It returns the
// signals for this client.
func (t *Table) transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool, wait time.Duration) (own []driver.Signal, err error) {
	tx, err := t.db.Begin(ctx, wait)
	if err != nil {
		return nil, err
	}
	w := &work{table: t, ctx: ctx, tx: tx}
	over := false
	defer func() {
		if !over { // f may have panicked
			tx.Rollback(ctx)
		}
	}()
	if err := w.lock(steps); err != nil {
		return nil, err
	}
	end, err := w.end(steps)
	if err != nil {
		return nil, err
	}
	for i, s := range steps {
		goesOn := true
		if err := w.run(s, func(e *locktable.Entry) { goesOn = f(i, e, w.now) }); err != nil {
			return nil, err
		}
		if !goesOn {
			break
		}
	}
	last := w.last(end)
	if len(last) == 0 && !w.moved {
		return w.own, nil // nothing has changed
	}
	over = true
	if err := tx.Commit(ctx, last...); err != nil {
		if errors.Is(err, ErrLate) {
			err = context.DeadlineExceeded
		}
		return nil, err
	}
	return w.own, nil
}

// work is one transaction under way.
type work struct {
	table *Table
	ctx   context.Context
	tx    Tx
	now   locktable.Instant // the server's time; all rows were locked by then
	rows  map[string]*row
	moved bool // waiters were changed

	own    []driver.Signal    // for this client
	others []locktable.Signal // for others
}

// row is an entry under way.
type row struct {
	stored   []byte
	columns  Columns
	inserted bool // by this transaction
	changed  bool
}

// lock reads the rows of all names, for nobody else to change.
func (w *work) lock(steps []locktable.Step) error {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name
	}
	slices.Sort(names)
	names = slices.Compact(names)
	w.rows = make(map[string]*row, len(names))
	inserted := map[string]bool{}
	for range 10 {
		if err := w.lockThose(names, inserted); err != nil {
			return err
		}
		for _, name := range names {
			if w.rows[name] != nil {
				continue
			}
			n, err := w.tx.Exec(w.ctx, Statement{SQL: w.table.sql.insert, Args: []any{[]byte(name), NewVersion()}})
			if err != nil {
				return err
			}
			if n > 0 {
				inserted[name] = true
			}
		}
		if len(w.rows) == len(names) {
			return nil
		}
		clear(w.rows)
	}
	return errors.New("rows that were inserted are not there")
}

func (w *work) lockThose(names []string, inserted map[string]bool) error {
	args, n := make([]any, 0, len(names)), 1
	for n < len(names) {
		n *= 4 // few statements, whatever the number of names
	}
	for i := range n {
		args = append(args, []byte(names[min(i, len(names)-1)]))
	}
	sql, timed := w.table.Dialect.locking(n)
	asked := time.Now()
	err := w.tx.Query(w.ctx, Statement{SQL: sql, Args: args}, func(scan Scan) error {
		var name []byte
		r := &row{}
		var version, now int64
		if err := scan(&name, &version, &r.stored, &now); err != nil {
			return err
		}
		if r.inserted = inserted[string(name)]; len(r.stored) == 0 && !r.inserted {
			r.stored = []byte{0} // somebody edited it: no entry, and not a free name either
		}
		w.rows[string(name)], w.now = r, max(w.now, locktable.Instant(now))
		return nil
	})
	if err == nil && timed && w.now != 0 && w.table.Told != nil {
		w.table.Told(w.now, asked, time.Now())
	}
	if err != nil || timed {
		return err
	}
	w.now, err = w.table.ask(w.ctx, w.tx)
	return err
}

// NewVersion draws the version of a value. It is drawn and not counted, so that no two
// values of a name ever have the same: also if the name was forgotten and came again, or
// the server has an older state back, from a backup or by a fail-over.
func NewVersion() int64 { return 1 + rand.Int64N(1<<62) }

// ask asks the server for its time.
func (t *Table) ask(ctx context.Context, q interface {
	Query(ctx context.Context, s Statement, row func(scan Scan) error) error
}) (now locktable.Instant, err error) {
	err = q.Query(ctx, Statement{SQL: t.sql.now}, func(scan Scan) error {
		var is int64
		err := scan(&is)
		now = locktable.Instant(is)
		return err
	})
	return now, err
}

// end is when the steps end, on the server's clock or a little before, see driver.End; 0
// if they have no end. The rows are locked by now: whoever asks for them later comes
// after this transaction.
func (w *work) end(steps []locktable.Step) (locktable.Instant, error) {
	if !slices.ContainsFunc(steps, func(s locktable.Step) bool { return s.OnTime }) {
		return 0, nil
	}
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	left := time.Until(driver.End(w.ctx))
	if left <= 0 {
		return 0, context.DeadlineExceeded
	}
	return w.now + locktable.Instant((left-left/1000)/time.Microsecond), nil
}

// run takes one step.
func (w *work) run(s locktable.Step, f func(e *locktable.Entry)) error {
	r := w.rows[s.Name]
	e, _, err := locktable.Apart(&line{work: w}, s, r.stored, w.now, f)
	if err != nil {
		if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt {
			err = fmt.Errorf("the row of %.80q: %w", s.Name, err)
		}
		return err
	}
	for _, s := range e.Signals {
		if s.Inbox == w.table.Inbox {
			w.own = append(w.own, s.Signal)
		} else {
			w.others = append(w.others, s)
		}
	}
	if !e.Changed {
		return nil
	}
	if stored := e.Append(nil); !bytes.Equal(stored, r.stored) {
		r.stored, r.columns, r.changed = stored, ColumnsOf(e), true
	}
	return nil
}

// last are the statements that end the transaction.
func (w *work) last(end locktable.Instant) (all []Statement) {
	var changed []Row
	var superfluous []string
	for name, r := range w.rows {
		switch {
		case r.changed:
			changed = append(changed, Row{Name: name, Version: NewVersion(), Entry: r.stored, Columns: r.columns})
		case r.inserted:
			superfluous = append(superfluous, name)
		}
	}
	if len(changed) == 0 && !w.moved {
		return nil // all is undone
	}
	slices.SortFunc(changed, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range superfluous {
		all = append(all, Statement{SQL: w.table.sql.remove, Args: []any{[]byte(name)}, Rows: -1})
	}
	if len(changed) > 0 {
		s := w.table.Dialect.Store(changed, end)
		s.SQL = w.table.Dialect.statement(s.SQL)
		all = append(all, s)
	}
	if len(w.others) > 0 && w.table.Dialect.Signal != nil {
		s := w.table.Dialect.Signal(w.others)
		s.SQL = w.table.Dialect.statement(s.SQL)
		all = append(all, s)
	}
	return all
}

// Properties implements locktable.Table.
func (t *Table) Properties() driver.Properties { return t.Options.Properties() }

// Close implements locktable.Table. What is under way ends by its ctx.
func (t *Table) Close() error {
	t.close()
	t.running.Close()
	t.db.Close()
	return nil
}

// failed types a failure. The end of the caller's ctx, and damage, pass as they are.
func (t *Table) failed(ctx context.Context, err error) error {
	_, corrupt := errors.AsType[*locktable.CorruptError](err)
	_, typed := errors.AsType[*driver.Error](err)
	switch {
	case err == nil, corrupt, typed:
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	case t.closing.Err() != nil:
		return driver.ErrClosed
	}
	return t.Options.Failed(err)
}
