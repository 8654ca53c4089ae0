package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// Where nobody tells of a loss (signals are late, or there are none), its release is the first to hear of it.
func TestDoSaysLostWhenOnlyItsReleaseFindsOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		heard := &listener{}
		c, f := w.client(&pawl.Options{Observer: heard.observer()})
		f.noSignals = true
		other, _ := w.client(nil)
		force := func(context.Context) error {
			return must(t)(other.Mutex("x").ForceLock(background)).Release(background)
		}
		own := errors.New("own")
		isError(t, c.Mutex("x").Do(background, force), pawl.ErrLost)
		isError(t, c.Mutex("x").Do(background, func(ctx context.Context) error { _ = force(ctx); return own }), pawl.ErrLost, own)
		ran, err := c.RWMutex("x").TryRDo(background, force)
		isError(t, err, pawl.ErrLost)
		if !ran {
			t.Error("says that it did not run")
		}
		heard.balanced(t)
		if n := heard.count("lost"); n != 3 {
			t.Errorf("%d losses were told: %v", n, heard.heard())
		}
	})
}

func TestDoSaysALossOnceThoughItsFunctionReturnsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		other, _ := w.client(nil)
		err := c.Mutex("x").Do(background, func(ctx context.Context) error {
			must(t)(other.Mutex("x").ForceLock(background))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if _, ok := err.(*pawl.LostError); !ok {
			t.Errorf("it says %v", err)
		}
	})
}

func TestDoDoesNotBeginOnALeaseThatIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other, _ := w.client(nil)
		c, _ := w.client(&pawl.Options{Observer: &pawl.Observer{Acquired: func(e pawl.AcquiredEvent) {
			noError(t, must(t)(other.Mutex("x").ForceLock(background)).Release(background))
			<-e.Lease.Done()
		}}})
		f := func(context.Context) error { t.Error("it ran"); return nil }
		isError(t, c.Mutex("x").Do(background, f), pawl.ErrLost)
		ran, err := c.Mutex("x").TryDo(background, f)
		isError(t, err, pawl.ErrLost)
		if ran {
			t.Error("says that it ran")
		}
		w.free("x")
	})
}

func TestTryDoTellsItsOwnErrHeldFromThatOfItsFunction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		other, _ := w.client(nil)
		must(t)(other.Mutex("y").Lock(background))
		nested := func(ctx context.Context) error {
			_, err := c.Mutex("y").TryDo(ctx, func(context.Context) error { return nil })
			return err
		}
		ran, err := c.Mutex("x").TryDo(background, nested)
		isError(t, err, pawl.ErrHeld)
		if !ran {
			t.Error("it ran, and says that it was skipped")
		}
		must(t)(other.Mutex("x").Lock(background))
		ran, err = c.Mutex("x").TryDo(background, nested)
		isError(t, err, pawl.ErrHeld)
		if ran {
			t.Error("it was skipped, and says that it ran")
		}
	})
}

// What f left behind hears of the end before anybody else can have the name.
func TestDoEndsTheCtxOfItsFunctionBeforeTheName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		var given context.Context
		f.set(func(op string) error {
			if op == "release" && given.Err() == nil {
				t.Error("the name is released, and the ctx goes on")
			}
			return nil
		}, nil)
		noError(t, c.Mutex("x").Do(background, func(ctx context.Context) error {
			given = ctx //nolint:fatcontext // it is looked at when the function is over
			return nil
		}))
	})
}

func TestFenceOfEachNameIsFoundInsideNestedDos(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		fence := func(ctx context.Context, name string) {
			t.Helper()
			if got, ok := pawl.FenceOf(ctx, name); !ok || got != w.entry(name).Holders[0].Fence {
				t.Errorf("the fence of %q is %d, %v", name, got, ok)
			}
		}
		noError(t, c.Mutex("outer").Do(background, func(ctx context.Context) error {
			return c.Mutex("inner").Do(ctx, func(ctx context.Context) error {
				fence(ctx, "outer")
				fence(ctx, "inner")
				if got, _ := pawl.FenceFromContext(ctx); got != w.entry("inner").Holders[0].Fence {
					t.Errorf("the innermost fence is %d", got)
				}
				lease := must(t)(c.Mutex("held").Lock(ctx))
				fence(lease.Context(), "outer")
				fence(lease.Context(), "held")
				if _, ok := pawl.FenceOf(ctx, "held"); ok {
					t.Error("a fence of what is held elsewhere")
				}
				return lease.Release(ctx)
			})
		}))
		if _, ok := pawl.FenceOf(background, "outer"); ok {
			t.Error("a fence where there is no lease")
		}
	})
}

func TestNilLeaseAnswersAnErrorRatherThanPanics(t *testing.T) {
	for _, l := range []*pawl.Lease{nil, {}} {
		isError(t, l.Release(background), pawl.ErrInvalid)
		isError(t, l.ReleaseNow(background), pawl.ErrInvalid)
		isError(t, l.Err(), pawl.ErrInvalid)
		<-l.Done()
		isError(t, context.Cause(l.Context()), pawl.ErrInvalid)
		if l.Name() != "" || l.Fence() != 0 || !l.Deadline().IsZero() {
			t.Errorf("%q, fence %d, until %v", l.Name(), l.Fence(), l.Deadline())
		}
	}
}

func TestMinHoldThatIsLongerThanTheMaxHoldIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		_, err := c.Mutex("x", pawl.WithMinHold(time.Minute+1), pawl.WithMaxHold(time.Minute)).Lock(background)
		isError(t, err, pawl.ErrInvalid)
		if f.count("acquire") > 0 {
			t.Error("it was sent")
		}
		noError(t, must(t)(c.Mutex("x", pawl.WithMinHold(time.Minute), pawl.WithMaxHold(time.Minute)).Lock(background)).Release(background))
	})
}

// The caller's own map may change while locks are acquired.
func TestOptionsAreCopiedAtNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		acquired := 0
		o := &pawl.Options{
			Labels:   map[string]string{"job": "a"},
			Observer: &pawl.Observer{Acquired: func(pawl.AcquiredEvent) { acquired++ }},
		}
		c, _ := w.client(o)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				o.Labels["job"] = "b"
				o.Observer.Acquired = nil
			}
		})
		for range 100 {
			l := must(t)(c.Mutex("x", pawl.WithLabel("run", "7")).Lock(background))
			if labels := w.entry("x").Holders[0].Owner.Labels; labels["job"] != "a" || labels["run"] != "7" {
				t.Errorf("labels %v", labels)
			}
			noError(t, l.Release(background))
		}
		wg.Wait()
		if acquired != 100 {
			t.Errorf("%d of 100 were told", acquired)
		}
	})
}
