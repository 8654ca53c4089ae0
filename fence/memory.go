package fence

import (
	"context"
	"sync"
)

// Memory remembers the highest fence of each resource in this process, for a service
// whose writes all come from this process. It never forgets a resource, and needs about
// 100 bytes for each. The zero Memory is ready, and many goroutines may use it.
type Memory struct {
	mu        sync.Mutex // protects the map and the fences in it, not the turns
	resources map[string]*resourceFences
}

// resourceFences has the fences of one resource.
type resourceFences struct {
	written uint64        // the highest accepted fence of a writer
	seen    uint64        // the highest accepted fence of a writer or reader
	turn    chan struct{} // has one element while a write runs in Guard
}

// Check accepts a write with this fence, or refuses it with a [*StaleError]. It does not
// guard the time between the check and the write: a writer that is paused there can write
// after a writer with a higher fence. Guard prevents that.
func (m *Memory) Check(resource string, fence uint64) error {
	_, err := m.check(resource, fence, true)
	return err
}

// Guard runs write if the fence is good. No other write to the resource runs meanwhile,
// so the check and the write are one step. It returns the error of write, or of Check, or
// of ctx if ctx ends while Guard waits for other writes. write gets ctx.
func (m *Memory) Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error {
	if err := checkNotNil(ctx, "write", write); err != nil {
		return err
	}
	known, err := m.check(resource, fence, true)
	if err != nil {
		return err
	}
	select {
	case known.turn <- struct{}{}:
		defer func() { <-known.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := m.check(resource, fence, true); err != nil {
		return err // Memory accepted a higher fence while this write waited for its turn
	}
	return write(ctx)
}

// CheckReader is Check for a reader of an RWMutex. It refuses the reader if it has
// accepted a writer with a higher fence. The package comment says how to read more than
// once.
func (m *Memory) CheckReader(resource string, fence uint64) error {
	_, err := m.check(resource, fence, false)
	return err
}

// GuardReader runs read between two calls of CheckReader. Other readers may run at the
// same time. If a writer with a higher fence comes meanwhile, the second call refuses the
// reader, because the reads are not consistent. read gets ctx.
func (m *Memory) GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error {
	if err := checkNotNil(ctx, "read", read); err != nil {
		return err
	}
	if err := m.CheckReader(resource, fence); err != nil {
		return err
	}
	if err := read(ctx); err != nil {
		return err
	}
	return m.CheckReader(resource, fence)
}

// check accepts a fence of a writer or a reader, and returns the fences of its resource.
func (m *Memory) check(resource string, fence uint64, isWriter bool) (*resourceFences, error) {
	if err := validate(resource, fence); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.resources[resource]
	if known == nil {
		if m.resources == nil {
			m.resources = map[string]*resourceFences{}
		}
		known = &resourceFences{turn: make(chan struct{}, 1)}
		m.resources[resource] = known
	}
	highest := known.written
	if isWriter {
		highest = known.seen
	}
	if err := checkNotBelow(resource, fence, highest); err != nil {
		return nil, err
	}
	if isWriter {
		known.written = fence
	}
	known.seen = max(known.seen, fence)
	return known, nil
}
