// Package lazyctx has a context with a deadline that starts its timer only when Done is
// called. Each request to a backend has a deadline, and for a fast request the timer
// would cost more than the lock.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is context.WithDeadline, but makes its timer only when Done is called.
type Context struct {
	context.Context // the parent
	deadline        time.Time

	mu   sync.Mutex // protects the fields below
	real *timed     // nil until it is needed
	over bool
}

// timed is the context with the timer.
type timed struct {
	context.Context
	stop context.CancelFunc
}

// WithDeadline ends at the deadline, and with the parent. The caller must cancel it.
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

// A Storage is the memory for one context, as a part of the request's own struct. Each
// further context is allocated, because a driver may keep the first. Only one goroutine
// at a time may use a Storage.
type Storage struct {
	first Context // in use if it has a parent
}

// WithDeadline is the package's WithDeadline. A nil Storage always allocates.
func (r *Storage) WithDeadline(parent context.Context, deadline time.Time) *Context {
	if r == nil || r.first.Context != nil {
		return WithDeadline(parent, deadline)
	}
	return r.first.bind(parent, deadline)
}

// WithoutCancel is context.WithoutCancel, but returns a ctx that never ends as it is.
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
	c.over = true
	if c.real != nil {
		c.real.stop()
	}
}

// Ends returns the time at which c ends at the latest.
func (c *Context) Ends() time.Time { return c.deadline }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.deadline, true }

// CallerDone is called by the package's CallerDone.
func (c *Context) CallerDone() <-chan struct{} { return c.Context.Done() }

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.realLocked().Done()
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil || c.over || !time.Now().Before(c.deadline) {
		if err := c.realLocked().Err(); err != nil {
			return err
		}
	}
	return c.Context.Err() // a child context learns of the parent's end a moment later than a caller of CallerDone
}

// Value calls the real context if there is one, so that the context package finds its own
// value in it.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	inner := c.real
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.Context.Value(key)
}

// realLocked makes the context with the timer.
func (c *Context) realLocked() context.Context {
	if c.real == nil {
		c.real = &timed{}
		c.real.Context, c.real.stop = context.WithDeadline(c.Context, c.deadline)
		if c.over {
			c.real.stop()
		}
	}
	return c.real.Context
}
