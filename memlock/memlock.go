// Package memlock keeps locks in the memory of one process: for programs that have no
// other process to exclude, for tests, and as the oracle that every other backend is
// compared with.
//
//	locks, err := pawl.New(memlock.New(nil), nil)
//
// Clients that exclude each other share one [Memory], and each has a driver of its own.
// Nothing is kept beyond the life of the Memory, fences included.
//
// # URLs
//
//   - "mem:" is a Memory of its own, which nobody else can open.
//   - "mem:NAME" is shared by all in this process who open that name, until it ends.
//
// There are no parameters.
package memlock

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Options for a Memory. The zero value, and nil, are fine.
type Options struct {
	// Now is the backend's clock; it alone decides what has expired. Default: the time of
	// the machine when the Memory was made, plus the monotonic time since, so it never
	// runs back. See [Clock] for tests.
	Now func() time.Time
}

// Memory is one lock server in memory. Its drivers are its clients.
type Memory struct {
	now     func() time.Time
	seed    maphash.Seed
	shards  [64]shard
	clients clients

	watchers driver.Watchers
}

// NewMemory makes an empty Memory.
func NewMemory(o *Options) *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	if o != nil {
		m.now = o.Now
	}
	if m.now == nil {
		start := time.Now()
		m.now = func() time.Time { return start.Round(0).Add(time.Since(start)) }
	}
	return m
}

// Driver makes a client of m.
func (m *Memory) Driver() *locktable.Driver {
	return m.clients.join(func(inbox string) *locktable.Driver {
		return locktable.New(&client{m, inbox}, inbox)
	})
}

// New makes the only client of a Memory of its own.
func New(o *Options) *locktable.Driver { return NewMemory(o).Driver() }

// client is the table that one driver works on: the Memory, and where the driver's
// signals go.
type client struct {
	*Memory
	inbox string
}

// Close takes the client's inbox away. The Memory stays, for the others.
func (c *client) Close() error {
	c.clients.leave(c.inbox)
	return nil
}

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

// deliver hands out the signals of a step. Its shard is free again by then, for who
// hears a signal comes back at once.
func (m *Memory) deliver(signals []locktable.Signal) {
	for _, s := range signals {
		if d := m.clients.find(s.Inbox); d != nil {
			d.Deliver(s.Signal)
		}
	}
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
		Clock:         "process",
		FenceSurvives: "nothing: fences rise for as long as the Memory lives",
		MinTTL:        driver.MinTTL,
		Push:          true,
		PushesChanges: true,
	}
}

func (m *Memory) shard(name string) *shard {
	return &m.shards[maphash.String(m.seed, name)%uint64(len(m.shards))]
}
