package pawl_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// lateCtx ends 50 ms after its deadline, as a ctx may on a busy machine.
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

// diagnosable is a network to a backend that implements Diagnose.
type diagnosable struct {
	*network
	findings []driver.Finding
}

func (e diagnosable) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	return e.findings, e.request(ctx, "diagnose", func() error { return nil })
}

// punctualClient returns a client of a backend whose requests fail at their deadline,
// before the ctx ends. After setSilent(true) the backend answers only releases.
func (w *world) punctualClient() (c *pawl.Client, net *network, setSilent func(bool)) {
	net = w.network()
	net.punctual = true
	return w.clientOf(diagnosable{network: net}, nil), net, func(silent bool) {
		net.setStuck(func(op string, _ int) bool { return silent && op != "release" })
	}
}

// lateCall has the arguments of a call of TestNoErrorOfTheCtxComesBeforeTheCtxHasEnded.
type lateCall struct {
	ctx       context.Context
	c         *pawl.Client
	net       *network
	setSilent func(bool)
	held      *pawl.Lease // on "x"
}

// A call returns an error that matches ctx's only after ctx.Err() is set, because
// programs check ctx.Err().
func TestNoErrorOfTheCtxComesBeforeTheCtxHasEnded(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for what, call := range map[string]func(l *lateCall) error{
		"Lock":      func(l *lateCall) error { return errOf(l.c.Mutex("y").Lock(l.ctx)) },
		"Lock held": func(l *lateCall) error { return errOf(l.c.Mutex("x").Lock(l.ctx)) },
		"TryLock over a socket": func(l *lateCall) error {
			l.net.setStuck(nil)
			l.net.acquireFunc = func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
				deadline, _ := ctx.Deadline()
				time.Sleep(time.Until(deadline))
				return driver.Grant{}, os.ErrDeadlineExceeded
			}
			return errOf(l.c.Mutex("y").TryLock(l.ctx))
		},
		"TryLock":           func(l *lateCall) error { return errOf(l.c.Mutex("y").TryLock(l.ctx)) },
		"ForceLock":         func(l *lateCall) error { return errOf(l.c.Mutex("x").ForceLock(l.ctx)) },
		"RLock":             func(l *lateCall) error { return errOf(l.c.RWMutex("y").RLock(l.ctx)) },
		"Acquire":           func(l *lateCall) error { return errOf(l.c.Semaphore("y", 2).Acquire(l.ctx, 1)) },
		"Do":                func(l *lateCall) error { return l.c.Mutex("y").Do(l.ctx, nothing) },
		"TryDo":             func(l *lateCall) error { return errOf(l.c.Mutex("y").TryDo(l.ctx, nothing)) },
		"Once.Do":           func(l *lateCall) error { return errOf(l.c.Once("y").Do(l.ctx, "1", nothing)) },
		"All.Lock":          func(l *lateCall) error { return errOf(pawl.All(l.c.Mutex("y"), l.c.Mutex("z")).Lock(l.ctx)) },
		"All.TryLock":       func(l *lateCall) error { return errOf(pawl.All(l.c.Mutex("y"), l.c.Mutex("z")).TryLock(l.ctx)) },
		"Election.Run":      func(l *lateCall) error { return l.c.Election("y").Run(l.ctx, nothing) },
		"Election.Leader":   func(l *lateCall) error { return errOf(l.c.Election("y").Leader(l.ctx)) },
		"Inspect":           func(l *lateCall) error { return errOf(l.c.Inspect(l.ctx, "y")) },
		"Diagnose":          func(l *lateCall) error { return errOf(l.c.Diagnose(l.ctx)) },
		"Break":             func(l *lateCall) error { return l.c.Break(l.ctx, "x", l.held.Fence(), noDelay) },
		"Break for the TTL": func(l *lateCall) error { return l.c.Break(l.ctx, "x", l.held.Fence(), nil) },
		"WaitUntilFree":     func(l *lateCall) error { return l.c.WaitUntilFree(l.ctx, "x") },
		"Confirm":           func(l *lateCall) error { return l.held.Confirm(l.ctx) },
		"SetValue":          func(l *lateCall) error { return l.held.SetValue(l.ctx, nil) },
		"Detach":            func(l *lateCall) error { return errOf(l.held.Detach(l.ctx)) },
		"List": func(l *lateCall) (err error) {
			for _, err = range l.c.List(l.ctx, "") {
			}
			return err
		},
		"Watch": func(l *lateCall) error {
			for range l.c.Watch(l.ctx, "x") {
			}
			return context.DeadlineExceeded // Watch ends as ctx does, and without an error
		},
		"Attach": func(l *lateCall) error {
			l.setSilent(false)
			handle, err := l.held.Detach(background)
			if l.setSilent(true); err != nil {
				return err
			}
			return errOf(l.c.Attach(l.ctx, handle))
		},
		"Open": func(l *lateCall) error {
			return errOf(pawl.OpenWith(l.ctx, func() (driver.Driver, error) {
				deadline, _ := l.ctx.Deadline()
				time.Sleep(time.Until(deadline))
				return nil, context.DeadlineExceeded
			}, nil))
		},
	} {
		runInWorld(t, what, func(t *testing.T, w *world) {
			c, net, setSilent := w.punctualClient()
			held := must(c.Mutex("x").Lock(background))(t)
			setSilent(true)
			ctx := newLateCtx(t, 100*time.Millisecond)
			err := call(&lateCall{ctx, c, net, setSilent, held})
			if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
				t.Errorf("the call returns %v, and ctx.Err() is %v; want DeadlineExceeded from both", err, ctx.Err())
			}
			setSilent(false)
		})
	}
}

// If a deadline of the driver passes, the error does not match the end of the caller's
// ctx.
func TestADeadlineOfTheDriverIsNoErrorOfTheCtx(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _, setSilent := w.punctualClient()
		setSilent(true)
		// background has no deadline, and the driver gives up at once.
		_, err := c.Inspect(background, "x")
		isError(t, err, pawl.ErrUnavailable)
		_, openErr := pawl.OpenWith(background, func() (driver.Driver, error) { return nil, context.DeadlineExceeded }, nil)
		for _, err := range []error{err, openErr} {
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v; want an error that does not match one of the ctx, which has not ended", err)
			}
		}
	})
}
