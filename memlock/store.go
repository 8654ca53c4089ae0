package memlock

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Update implements locktable.Table.
func (m *Memory) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i := range steps {
		signals, news, err := m.shard(steps[i].Name).step(ctx, i, &steps[i], m.now, f)
		if err != nil {
			return err
		}
		m.deliver(signals)
		if news {
			m.watchers.Notify(steps[i].Name)
		}
	}
	return nil
}

// UpdateAll implements locktable.Grouped. It has the shards of all names while it is at
// it, which everybody takes in the same order.
func (m *Memory) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	signals, news, err := m.stepAll(ctx, steps, f)
	if err != nil {
		return err
	}
	m.deliver(signals)
	for _, name := range news {
		m.watchers.Notify(name)
	}
	return nil
}

func (m *Memory) stepAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) (signals []locktable.Signal, news []string, _ error) {
	for i := range m.shards {
		s := &m.shards[i]
		if slices.ContainsFunc(steps, func(step locktable.Step) bool { return m.shard(step.Name) == s }) {
			s.mu.Lock()
			defer s.mu.Unlock()
		}
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	now := locktable.At(m.now())
	for i := range steps {
		name := steps[i].Name
		s := m.shard(name)
		e := s.entryLocked(name)
		goesOn := f(i, &e.Entry, now)
		sent, told := s.leaveLocked(name, e, now)
		if signals = append(signals, sent...); told {
			news = append(news, name)
		}
		if !goesOn {
			break
		}
	}
	return signals, news, nil
}

// Read implements locktable.Table.
func (m *Memory) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	e, now := m.shard(name).read(name, m.now)
	return e, now, ctx.Err()
}

// Scan implements locktable.Table.
func (m *Memory) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	var names []string
	for i := range m.shards {
		names = m.shards[i].appendNames(names, prefix)
	}
	slices.Sort(names)
	return func(yield func(locktable.Row, error) bool) {
		for _, name := range names {
			e, now, err := m.Read(ctx, name)
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) || err != nil {
				return
			}
		}
	}
}

// Properties implements locktable.Table.
func (m *Memory) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "memory",
		Clock:         driver.ClockProcess,
		FenceSurvives: "nothing: fences rise for as long as the Memory lives",
		MinTTL:        driver.MinTTL,
		Push:          true,
		PushesChanges: true,
	}
}

func (m *Memory) shard(name string) *shard {
	return &m.shards[maphash.String(m.seed, name)%uint64(len(m.shards))]
}

// Forget empties the memory, as a server does that loses its data: for tests. Nobody is
// told; holders hear of it by their next renewal.
func (m *Memory) Forget() {
	for i := range m.shards {
		m.shards[i].forget()
	}
}
