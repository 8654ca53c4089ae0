package fence

import (
	"context"
	"sync"
)

// Memory remembers the highest fence of each resource in this process, for a service that
// is the only one to write to them. It forgets nothing: what one resource needs is about
// 100 bytes. The zero Memory is ready, and many goroutines may use it.
type Memory struct {
	mu    sync.Mutex // protects the map and the fences in it, not the turns
	known map[string]*mark
}

// A mark is what is known of one resource.
type mark struct {
	written uint64        // the highest accepted of those who write
	seen    uint64        // the highest accepted of anybody
	turn    chan struct{} // has room for the one who writes, in Guard
}

// Check accepts a write with this fence, or refuses it with a [*StaleError]. What comes
// between the check and the write is not guarded: a writer that is paused there writes
// after one with a higher fence. Guard is for that.
func (m *Memory) Check(resource string, fence uint64) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	_, err := m.check(resource, fence)
	return err
}

// Guard runs write if the fence is good. While it runs nobody else writes to the
// resource, so that a check and its write are one. It returns write's error, or that of
// Check, or ctx's if that ends while others write. ctx is write's.
func (m *Memory) Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	k, err := m.check(resource, fence)
	if err != nil {
		return err
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := m.check(resource, fence); err != nil {
		return err // a higher one came while this one waited for its turn
	}
	return write(ctx)
}

// CheckReader is Check for a reader of an RWMutex: it is refused if a writer with a
// higher fence was accepted. It refuses no other reader, and each writer with a lower
// fence from then on: the readers had to wait until that one had lost the lock.
//
// Who reads more than once calls it before the first time and after the last: then no
// writer came in between, and what was read is of one moment.
func (m *Memory) CheckReader(resource string, fence uint64) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.mark(resource)
	if err := decide(resource, fence, k.written); err != nil {
		return err
	}
	k.seen = max(k.seen, fence)
	return nil
}

// GuardReader runs read between two calls of CheckReader. Other readers run beside it,
// and so does a writer with a higher fence that comes meanwhile: then the second call
// finds it, and what was read is not of one moment. ctx is read's.
func (m *Memory) GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error {
	if err := m.CheckReader(resource, fence); err != nil {
		return err
	}
	if err := read(ctx); err != nil {
		return err
	}
	return m.CheckReader(resource, fence)
}

func (m *Memory) check(resource string, fence uint64) (*mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.mark(resource)
	if err := decide(resource, fence, k.seen); err != nil {
		return nil, err
	}
	k.written, k.seen = fence, fence
	return k, nil
}

// mark is what is known of a resource, from now on. The caller holds mu.
func (m *Memory) mark(resource string) *mark {
	k := m.known[resource]
	if k == nil {
		if m.known == nil {
			m.known = map[string]*mark{}
		}
		k = &mark{turn: make(chan struct{}, 1)}
		m.known[resource] = k
	}
	return k
}
