package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// lateCtx ends some time after its deadline, as each ctx does on a busy machine.
type lateCtx struct {
	context.Context
	deadline time.Time
}

func (c *lateCtx) Deadline() (time.Time, bool) { return c.deadline, true }

func newLateCtx(t *testing.T, deadline time.Duration) *lateCtx {
	ctx, cancel := context.WithTimeout(background, deadline+50*time.Millisecond)
	t.Cleanup(cancel)
	return &lateCtx{ctx, time.Now().Add(deadline)}
}

// examines is a faulty backend with a doctor.
type examines struct{ *faulty }

func (e examines) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	return nil, e.step(ctx, "diagnose", func() error { return nil })
}

// punctual makes a client of a backend that answers only releases while it is silent, and
// notices each deadline before the ctx ends.
func (w *world) punctual() (c *pawl.Client, silent func(bool)) {
	f := w.faulty()
	f.punctual = true
	return w.clientOf(examines{f}, nil), func(is bool) {
		f.hang(func(op string, _ int) bool { return is && op != "release" })
	}
}

// late has the parts that the calls of TestAnErrorOfTheCtxComesOnceTheCtxHasEnded need.
type late struct {
	ctx    context.Context
	c      *pawl.Client
	silent func(bool)
	held   *pawl.Lease // on "x"
}

// Programs branch on ctx.Err(): an error that matches ctx's comes once that is not nil.
func TestAnErrorOfTheCtxComesOnceTheCtxHasEnded(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	second := func(_ any, err error) error { return err }
	for what, call := range map[string]func(l *late) error{
		"Lock":              func(l *late) error { return second(l.c.Mutex("y").Lock(l.ctx)) },
		"Lock held":         func(l *late) error { return second(l.c.Mutex("x").Lock(l.ctx)) },
		"TryLock":           func(l *late) error { return second(l.c.Mutex("y").TryLock(l.ctx)) },
		"ForceLock":         func(l *late) error { return second(l.c.Mutex("x").ForceLock(l.ctx)) },
		"RLock":             func(l *late) error { return second(l.c.RWMutex("y").RLock(l.ctx)) },
		"Acquire":           func(l *late) error { return second(l.c.Semaphore("y", 2).Acquire(l.ctx, 1)) },
		"Do":                func(l *late) error { return l.c.Mutex("y").Do(l.ctx, nothing) },
		"TryDo":             func(l *late) error { return second(l.c.Mutex("y").TryDo(l.ctx, nothing)) },
		"Once.Do":           func(l *late) error { return second(l.c.Once("y").Do(l.ctx, "1", nothing)) },
		"All.Lock":          func(l *late) error { return second(pawl.All(l.c.Mutex("y"), l.c.Mutex("z")).Lock(l.ctx)) },
		"All.TryLock":       func(l *late) error { return second(pawl.All(l.c.Mutex("y"), l.c.Mutex("z")).TryLock(l.ctx)) },
		"Election.Run":      func(l *late) error { return l.c.Election("y").Run(l.ctx, nothing) },
		"Election.Leader":   func(l *late) error { return second(l.c.Election("y").Leader(l.ctx)) },
		"Inspect":           func(l *late) error { return second(l.c.Inspect(l.ctx, "y")) },
		"Diagnose":          func(l *late) error { return second(l.c.Diagnose(l.ctx)) },
		"Break":             func(l *late) error { return l.c.Break(l.ctx, "x", l.held.Fence(), atOnce) },
		"Break for the TTL": func(l *late) error { return l.c.Break(l.ctx, "x", l.held.Fence(), nil) },
		"WaitUntilFree":     func(l *late) error { return l.c.WaitUntilFree(l.ctx, "x") },
		"Confirm":           func(l *late) error { return l.held.Confirm(l.ctx) },
		"SetValue":          func(l *late) error { return l.held.SetValue(l.ctx, nil) },
		"Detach":            func(l *late) error { return second(l.held.Detach(l.ctx)) },
		"List": func(l *late) (err error) {
			for _, err = range l.c.List(l.ctx, "") {
			}
			return err
		},
		"Watch": func(l *late) error {
			for range l.c.Watch(l.ctx, "x") {
			}
			return context.DeadlineExceeded // Watch ends as ctx does, and without an error
		},
		"Attach": func(l *late) error {
			l.silent(false)
			handle, err := l.held.Detach(background)
			if l.silent(true); err != nil {
				return err
			}
			return second(l.c.Attach(l.ctx, handle))
		},
	} {
		runInWorld(t, what, func(t *testing.T, w *world) {
			c, silent := w.punctual()
			held := must(t)(c.Mutex("x").Lock(background))
			silent(true)
			ctx := newLateCtx(t, 100*time.Millisecond)
			err := call(&late{ctx, c, silent, held})
			if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
				t.Errorf("%v, and ctx.Err() is %v", err, ctx.Err())
			}
			silent(false)
		})
	}
}

// The client does not take a deadline that the driver set for the end of the caller's
// ctx.
func TestADeadlineOfTheDriverIsNoErrorOfTheCtx(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, silent := w.punctual()
		silent(true)
		_, err := c.Inspect(background, "x") // it has no deadline, and the driver gives up at once
		isError(t, err, pawl.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v matches an error of the ctx, which has not ended", err)
		}
	})
}
