package memlock

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A table is the storage of a Memory.
type table struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [64]shard

	drivers   sync.Map // has the open *locktable.GroupedDriver of each inbox
	lastInbox atomic.Int64
	watchers  driver.Watchers
}

// Update implements locktable.Table.
func (t *table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i := range steps {
		signals, visible, err := t.shard(steps[i].Name).step(ctx, i, &steps[i], t.now, f)
		if err != nil {
			return err
		}
		t.deliver(signals)
		if visible {
			t.watchers.Notify(steps[i].Name)
		}
	}
	return nil
}

// UpdateAll implements locktable.Grouped. It locks the shards of all names, always in the
// same order, so that callers do not deadlock.
func (t *table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	var signals []locktable.Signal
	var changed []string
	defer func() { // runs after the shards are unlocked
		t.deliver(signals)
		for _, name := range changed {
			t.watchers.Notify(name)
		}
	}()
	for i := range t.shards {
		s := &t.shards[i]
		if slices.ContainsFunc(steps, func(step locktable.Step) bool { return t.shard(step.Name) == s }) {
			s.mu.Lock()
			defer s.mu.Unlock()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := locktable.At(t.now())
	for i := range steps {
		name := steps[i].Name
		s := t.shard(name)
		e := s.entryLocked(name)
		continues := f(i, &e.Entry, now)
		sent, visible := s.endStepLocked(e, now)
		if signals = append(signals, sent...); visible {
			changed = append(changed, name)
		}
		if !continues {
			break
		}
	}
	return nil
}

// Read implements locktable.Table.
func (t *table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	e, now := t.shard(name).read(name, t.now)
	return e, now, ctx.Err()
}

// Scan implements locktable.Table.
func (t *table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	var names []string
	for i := range t.shards {
		names = t.shards[i].appendNames(names, prefix)
	}
	slices.Sort(names)
	return func(yield func(locktable.Row, error) bool) {
		for _, name := range names {
			e, now, err := t.Read(ctx, name)
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) || err != nil {
				return
			}
		}
	}
}

// Properties implements locktable.Table.
func (t *table) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "memory",
		Clock:         driver.ClockProcess,
		FenceSurvives: driver.FencesRiseInProcess,
		MinTTL:        driver.MinTTL,
		PushesGrants:  true,
		PushesChanges: true,
	}
}

func (t *table) shard(name string) *shard {
	return &t.shards[maphash.String(t.seed, name)%uint64(len(t.shards))]
}
