package engine

import "sync"

// Background runs a backend's goroutines, and lets its Close wait for them. The zero
// value is ready.
type Background struct {
	goroutines sync.WaitGroup

	mu     sync.Mutex // protects the fields below; held while a goroutine is added
	closed bool
}

// Go runs f in a goroutine. After Close has begun, Go runs f in the caller's goroutine,
// because Close may no longer be waiting.
func (b *Background) Go(f func()) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		f()
		return
	}
	b.goroutines.Go(f)
	b.mu.Unlock()
}

// Close waits for all goroutines to end.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.goroutines.Wait()
}
