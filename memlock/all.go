package memlock

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/locktable"
)

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
	now, undo := locktable.At(m.now()), func() {}
	entries := make([]*entry, 0, len(steps))
	done := false
	defer func() { // also if f panics
		if !done {
			undo()
		}
		for i, e := range entries {
			sent, told := m.shard(steps[i].Name).leaveLocked(steps[i].Name, e, now)
			signals = append(signals, sent...)
			if told {
				news = append(news, steps[i].Name)
			}
		}
	}()
	for i := range steps {
		e := m.shard(steps[i].Name).entryLocked(steps[i].Name)
		before, earlier := e.Entry, undo
		before.Holders, before.Queue, before.Broken = slices.Clone(e.Holders), slices.Clone(e.Queue), slices.Clone(e.Broken)
		before.Signals, before.News = nil, false
		undo = func() { e.Entry = before; earlier() }
		entries = append(entries, e)
		if !f(i, &e.Entry, now) {
			return nil, nil, nil
		}
	}
	done = true
	return nil, nil, nil
}
