package locktable_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// byteTable is the simplest table of bytes, with faults that tests set.
type byteTable struct {
	mu      sync.Mutex
	rows    map[string][]byte
	now     locktable.Instant
	drivers map[string]*locktable.Driver

	err        error  // each call returns it
	beforeStep func() // is called while a step waits for its turn
	updates    int    // calls of Update
	closes     int
}

func newByteTable() *byteTable {
	return &byteTable{rows: map[string][]byte{}, now: start, drivers: map[string]*locktable.Driver{}}
}

func (table *byteTable) client(inbox string) *locktable.Driver {
	table.drivers[inbox] = locktable.New(table, inbox)
	return table.drivers[inbox]
}

// ctxEndingInNextStep returns a ctx that ends while the next step waits for its turn.
func (table *byteTable) ctxEndingInNextStep(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	table.beforeStep = func() {
		table.beforeStep = nil
		cancel()
	}
	return ctx, cancel
}

func (table *byteTable) load(name string) (*locktable.Entry, error) {
	if table.rows[name] == nil {
		return &locktable.Entry{}, nil
	}
	return locktable.Decode(table.rows[name])
}

func (table *byteTable) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	var signals []locktable.Signal
	defer func() {
		for _, signal := range signals {
			table.drivers[signal.Inbox].Deliver(signal.Signal)
		}
	}()
	table.mu.Lock()
	defer table.mu.Unlock()
	table.updates++
	for i, step := range steps {
		if table.beforeStep != nil {
			table.beforeStep()
		}
		if step.HasEnd && ctx.Err() != nil {
			return ctx.Err()
		}
		name := step.Name
		if table.err != nil {
			return table.err
		}
		e, err := table.load(name)
		if err != nil {
			return err
		}
		if f(i, e, table.now); e.Changed {
			table.rows[name] = e.Append(nil)
		}
		signals = append(signals, e.Signals...)
	}
	return ctx.Err()
}

func (table *byteTable) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	table.mu.Lock()
	defer table.mu.Unlock()
	e, err := table.load(name)
	return e, table.now, errors.Join(table.err, err)
}

func (table *byteTable) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(table.rows)) { // all names: a table may yield more
			e, now, err := table.Read(ctx, name)
			if table.err != nil {
				yield(locktable.Row{}, table.err)
				return
			}
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) {
				return
			}
		}
	}
}

func (table *byteTable) Properties() driver.Properties { return driver.Properties{Backend: "shelf"} }

func (table *byteTable) Close() error {
	table.closes++
	return io.ErrClosedPipe
}

func lease(who string) driver.LeaseRef {
	return driver.LeaseRef{Name: "job", Token: tokenOf(who), TTL: ttl}
}

// callAll calls each method that uses the table once, and returns the errors.
func callAll(ctx context.Context, d *locktable.Driver) map[string]error {
	out := map[string]error{}
	_, out["acquire"] = d.Acquire(ctx, *mutex("a"))
	_, out["renew"] = d.Renew(ctx, []driver.LeaseRef{lease("a")})
	out["release"] = d.Release(ctx, lease("a"))
	out["break"] = d.Break(ctx, "job", 1, 0, driver.Owner{})
	_, out["read"] = d.Inspect(ctx, "job")
	for _, err := range d.List(ctx, "job") {
		out["list"] = err
	}
	return out
}

// closingTable is a table that is closed during an update.
type closingTable struct {
	*byteTable
	duringUpdate func() error
}

func (c *closingTable) Update(context.Context, []locktable.Step, func(int, *locktable.Entry, locktable.Instant)) error {
	return errors.Join(c.duringUpdate(), errors.New("the connection was closed"))
}

// entryTable is a table that keeps the entry itself, not its bytes.
type entryTable struct {
	*byteTable
	e *locktable.Entry
}

func (m entryTable) Update(_ context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i := range steps {
		f(i, m.e, m.now)
	}
	return nil
}
