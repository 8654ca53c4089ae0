package swap

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Table is a [locktable.Table] over a [Store]. It computes a step from the last known
// value of its name, and swaps the result in. If the name has changed meanwhile, the swap
// fails, and the table computes the step again from the current value.
type Table struct {
	store     Store
	inbox     string
	deliver   func(driver.Signal)
	delayed   bool // the store is a DelayedWriter
	cache     cache
	names     nameLocks     // locked by single steps and by UpdateAll, not by a batch of steps
	queue     *swapQueue    // nil if the store does not gather
	swapSlots chan struct{} // its capacity is the number of concurrent swaps; nil: no limit
}

// New makes a Table. The store sends the signals for other clients. The table passes the
// signals for inbox, this client's own, to deliver: the [locktable.Driver.Deliver] of the
// driver over this table.
func New(s Store, inbox string, deliver func(driver.Signal)) *Table {
	_, delayed := s.(DelayedWriter)
	t := &Table{store: s, inbox: inbox, deliver: deliver, delayed: delayed, cache: cache{values: map[string]cached{}}}
	if g, ok := s.(Gatherer); ok {
		t.queue = &swapQueue{store: s, fit: g.Fit}
	}
	return t
}

// LimitSwaps limits the table to n swaps at a time, for a store that has n connections. A
// step waits for its turn before it is computed: otherwise its window could end while the
// swap waits for a connection.
func (t *Table) LimitSwaps(n int) *Table {
	t.swapSlots = make(chan struct{}, n)
	return t
}

// Update implements locktable.Table.
func (t *Table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	if len(steps) == 1 {
		refused, err := t.step(ctx, ctx, steps[0], func(e *locktable.Entry, now locktable.Instant) { f(0, e, now) })
		return cmp.Or(err, refused)
	}
	failed := map[int]error{}
	for part := range slices.Chunk(groupsOf(steps), maxBatchSteps) {
		if err := t.runBatch(ctx, steps, part, f, failed); err != nil {
			return err
		}
	}
	switch err := failed[0]; {
	case len(failed) == 0:
		return nil
	case len(failed) == len(steps) && !errors.Is(err, ErrLocked) && !errors.Is(err, errNameBusy): // the store fails
		return err
	}
	return &locktable.StepsError{Failed: failed}
}

// Read implements locktable.Table.
func (t *Table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	all, err := t.store.Load(ctx, []string{name})
	if err != nil {
		return nil, 0, err
	}
	w, err := t.store.Time(ctx)
	if err != nil {
		return nil, 0, err
	}
	e, err := decode(name, all[0].Value)
	if err != nil {
		return nil, 0, err
	}
	e.WallClock = w.WallClock
	return e, w.From, nil
}

// Scan implements locktable.Table.
func (t *Table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		for n, err := range t.store.Scan(ctx, prefix) {
			row := locktable.Row{Name: n.Name, Now: n.Now}
			if err == nil {
				if row.Entry, err = decode(n.Name, n.Stored.Value); err == nil {
					row.Entry.WallClock = n.WallClock
				}
			}
			if !yield(row, err) || err != nil && n.Name == "" {
				return
			}
		}
	}
}

// Properties implements locktable.Table.
func (t *Table) Properties() driver.Properties {
	p := t.store.Properties()
	p.MaxOverrun = max(p.MaxOverrun, maxWindow)
	return p
}

// Watch implements locktable.Watchable, if the store does.
func (t *Table) Watch(name string, f func()) (stop func()) {
	if s, ok := t.store.(locktable.Watchable); ok {
		return s.Watch(name, f)
	}
	return func() {}
}

// Forget drops the known values of all names. A store calls it when it may have lost
// data, because versions could repeat.
func (t *Table) Forget() { t.cache.clear() }

// Close implements locktable.Table.
func (t *Table) Close() error { return t.store.Close() }
