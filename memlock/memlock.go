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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Options for a Memory. The zero value, and nil, are fine.
type Options struct {
	// Now is the backend's clock; it alone decides what has expired. Default: the time of the machine when
	// the Memory was made, plus the monotonic time since, so it never runs back. See [Clock] for tests.
	Now func() time.Time
}

// Memory is one lock server in memory. Its drivers are its clients.
type Memory struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [64]shard

	mu      sync.RWMutex // protects clients and last
	clients map[string]*locktable.Driver
	last    int
}

// A shard holds the names that hash to it. Names are spread so that goroutines on names of their own seldom
// wait for each other.
type shard struct {
	mu      sync.Mutex
	entries map[string]*entry
	spare   *entry // one that was forgotten, for the next name: most are held for a moment
	floor   uint64 // the highest fence of the entries that were forgotten
	later   []birth
	next    int // of later
	born    int
	steps   int
	_       [64]byte // keeps neighbours out of each other's cache line
}

// An entry of a shard knows the how-manieth it is there. So does the list of all that sweep goes through.
type entry struct {
	locktable.Entry
	born int
}

type birth struct {
	name string
	born int
}

// sweepEvery is after how many steps on a shard its oldest names are looked at.
const sweepEvery = 16

// NewMemory makes an empty Memory.
func NewMemory(o *Options) *Memory {
	m := &Memory{seed: maphash.MakeSeed(), clients: map[string]*locktable.Driver{}}
	for i := range m.shards {
		m.shards[i].entries = map[string]*entry{}
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	c := &client{Memory: m, inbox: strconv.Itoa(m.last)}
	d := locktable.New(c, c.inbox)
	m.clients[c.inbox] = d
	return d
}

// New makes the only client of a Memory of its own.
func New(o *Options) *locktable.Driver { return NewMemory(o).Driver() }

// client is the table that one driver works on: the Memory, and where the driver's signals go.
type client struct {
	*Memory
	inbox string
}

// Close takes the client's inbox away. The Memory stays, for the others.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, c.inbox)
	return nil
}

// Update implements locktable.Table.
func (m *Memory) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i := range steps {
		signals, err := m.step(ctx, i, &steps[i], f)
		if err != nil {
			return err
		}
		m.deliver(signals)
	}
	return nil
}

// step runs f on one entry and returns the signals it leaves. They are delivered when the shard is free
// again, for who hears one comes back at once.
func (m *Memory) step(ctx context.Context, i int, step *locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) ([]locktable.Signal, error) {
	s := m.shard(step.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.OnTime && ctx.Err() != nil { // now that nothing holds it up any more
		return nil, ctx.Err()
	}
	e := s.entries[step.Name]
	if e == nil {
		e = s.take(step.Name)
	}
	now := locktable.At(m.now())
	f(i, &e.Entry, now)
	if e.Idle(now) {
		s.forget(step.Name, e)
	}
	s.sweep(now)
	if len(e.Signals) == 0 {
		return nil, nil
	}
	return slices.Clone(e.Signals), nil
}

// forget loses an entry that is idle.
func (s *shard) forget(name string, e *entry) {
	s.floor = max(s.floor, e.Fence)
	delete(s.entries, name)
	s.spare = e
	if last := len(s.later) - 1; last >= s.next && s.later[last].born == e.born {
		s.later = s.later[:last] // mostly it was the last to come, and sweep is spared the look
	}
}

// sweep forgets what became idle after its last step: what expired, and what was released in the microsecond of
// its grant. Now and then it looks at twice as many names as can have come since, the oldest first, so all get
// their turn, however many they are.
func (s *shard) sweep(now locktable.Instant) {
	if s.steps++; s.steps%sweepEvery != 0 {
		return
	}
	for range min(2*sweepEvery, len(s.later)-s.next) {
		old := s.later[s.next]
		s.next++
		switch e := s.entries[old.name]; {
		case e == nil || e.born != old.born: // it was forgotten, and may have come again since
		case e.Idle(now):
			s.forget(old.name, e)
		default:
			s.later = append(s.later, old)
		}
	}
	if 2*s.next >= len(s.later) { // mostly it is empty now, and begins again in the same memory
		s.later, s.next = append(s.later[:0], s.later[s.next:]...), 0
	}
}

// take makes an empty entry for a name. What it has in slices beyond their length is of the entry that was there
// before, and is overwritten.
func (s *shard) take(name string) *entry {
	e := s.spare
	if e == nil {
		e = &entry{}
	}
	s.spare = nil
	s.born++
	e.Entry = locktable.Entry{Fence: s.floor, Holders: e.Holders[:0], Queue: e.Queue[:0]}
	e.born = s.born
	s.entries[name] = e
	s.later = append(s.later, birth{name, s.born})
	return e
}

func (m *Memory) deliver(signals []locktable.Signal) {
	for _, s := range signals {
		m.mu.RLock()
		d := m.clients[s.Inbox]
		m.mu.RUnlock()
		if d != nil {
			d.Deliver(s.Signal)
		}
	}
}

// Read implements locktable.Table.
func (m *Memory) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	s := m.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	out := locktable.Entry{}
	if e := s.entries[name]; e != nil {
		out = e.Entry
		out.Holders, out.Queue = slices.Clone(e.Holders), slices.Clone(e.Queue)
		out.Broken, out.Signals = slices.Clone(e.Broken), nil
	}
	return &out, locktable.At(m.now()), ctx.Err()
}

// Scan implements locktable.Table.
func (m *Memory) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	var names []string
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for name := range s.entries {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		s.mu.Unlock()
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
	}
}

func (m *Memory) shard(name string) *shard {
	return &m.shards[maphash.String(m.seed, name)%uint64(len(m.shards))]
}
