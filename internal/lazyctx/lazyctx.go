// Package lazyctx has a context with a deadline that starts its timer only when Done is
// called. Each request to a backend has a deadline, and for a fast request the timer
// would cost more than the lock.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context with a deadline, whose timer is made only when Done is called.
type Context struct {
	context.Context // the parent
	deadline        time.Time

	mu        sync.Mutex    // protects the fields below
	withTimer *timerContext // nil until a method needs it
	canceled  bool
}

// A timerContext is a context with a timer.
type timerContext struct {
	context.Context
	stop context.CancelFunc
}

// WithDeadline returns a context that ends at the deadline, or with its parent. The
// caller must cancel it.
func WithDeadline(parent context.Context, deadline time.Time) *Context {
	return new(Context).bind(parent, deadline)
}

func (c *Context) bind(parent context.Context, deadline time.Time) *Context {
	c.Context, c.deadline = parent, deadline
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.deadline) {
		c.deadline = earlier
	}
	return c
}

// A Storage has room for one context in a request. WithDeadline allocates more contexts,
// because a driver may keep the first. Only one goroutine at a time may use a Storage.
type Storage struct {
	first Context // used if it has a parent
}

// WithDeadline is the package's WithDeadline. A nil Storage always allocates.
func (r *Storage) WithDeadline(parent context.Context, deadline time.Time) *Context {
	if r == nil || r.first.Context != nil {
		return WithDeadline(parent, deadline)
	}
	return r.first.bind(parent, deadline)
}

// WithoutCancel is context.WithoutCancel, but returns ctx itself if that never ends.
func WithoutCancel(ctx context.Context) context.Context {
	if _, bounded := ctx.Deadline(); !bounded && ctx.Done() == nil {
		return ctx // the usual case for the release of a lease
	}
	return context.WithoutCancel(ctx)
}

// Cancel ends c.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	if c.withTimer != nil {
		c.withTimer.stop()
	}
}

// Ends returns the time at which c ends at the latest.
func (c *Context) Ends() time.Time { return c.deadline }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.deadline, true }

// CallerDone is the method that the package's function CallerDone calls.
func (c *Context) CallerDone() <-chan struct{} { return c.Context.Done() }

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withTimerLocked().Done()
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withTimer != nil || c.canceled || !time.Now().Before(c.deadline) {
		if err := c.withTimerLocked().Err(); err != nil {
			return err
		}
	}
	return c.Context.Err() // the context with the timer ends a moment later than its parent
}

// Value asks the context with the timer if there is one, so that the context package
// finds its own value in it.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	inner := c.withTimer
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.Context.Value(key)
}

// withTimerLocked returns the context with the timer, and makes it if there is none.
func (c *Context) withTimerLocked() context.Context {
	if c.withTimer == nil {
		c.withTimer = &timerContext{}
		c.withTimer.Context, c.withTimer.stop = context.WithDeadline(c.Context, c.deadline)
		if c.canceled {
			c.withTimer.stop()
		}
	}
	return c.withTimer.Context
}
