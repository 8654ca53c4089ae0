package pawl

import (
	"context"
	"sync"
	"time"
)

// A bounded context is context.WithDeadline without the timer, until somebody asks for Done: each request to
// a backend is bounded, and one that is answered from memory or cache would spend more on the timer than on
// the lock.
type bounded struct {
	context.Context // the parent
	deadline        time.Time

	mu    sync.Mutex // protects inner and over
	inner context.Context
	stop  context.CancelFunc
	over  bool
}

func bound(parent context.Context, deadline time.Time) *bounded {
	return new(bounded).bind(parent, deadline)
}

func (b *bounded) bind(parent context.Context, deadline time.Time) *bounded {
	b.Context, b.deadline = parent, deadline
	if earlier, ok := parent.Deadline(); ok && earlier.Before(b.deadline) {
		b.deadline = earlier
	}
	return b
}

// lasting is ctx for a request that does not end with it.
func lasting(ctx context.Context) context.Context {
	if _, bounded := ctx.Deadline(); !bounded && ctx.Done() == nil {
		return ctx // as most are that leases are released with
	}
	return context.WithoutCancel(ctx)
}

// A request has room for the context of its first attempt, and mostly there is only one.
// Each further one is made anew, for a driver may keep what it was given.
type request struct {
	first bounded
	used  bool
}

func (r *request) next() *bounded {
	if r.used {
		return new(bounded)
	}
	r.used = true
	return &r.first
}

func (b *bounded) cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.stop != nil {
		b.stop()
	}
}

func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// CallerDone is for driver.CallerDone.
func (b *bounded) CallerDone() <-chan struct{} { return b.Context.Done() }

func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.real().Done()
}

func (b *bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner != nil || b.over || !time.Now().Before(b.deadline) {
		if err := b.real().Err(); err != nil {
			return err
		}
	}
	return b.Context.Err() // its children hear of its end a moment later than those who wait for CallerDone
}

// Value asks the real context once there is one, so that the context package finds its own inside it.
func (b *bounded) Value(key any) any {
	b.mu.Lock()
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return b.Context.Value(key)
}

// real makes the context with the timer. The caller holds the mutex.
func (b *bounded) real() context.Context {
	if b.inner == nil {
		b.inner, b.stop = context.WithDeadline(b.Context, b.deadline)
		if b.over {
			b.stop()
		}
	}
	return b.inner
}
