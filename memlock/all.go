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
