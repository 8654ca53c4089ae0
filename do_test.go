package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestDoReleasesOnReturnPanicAndGoexit(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		m := c.Mutex("x")
		boom := errors.New("boom")
		isError(t, m.Do(background, func(context.Context) error { return boom }), boom)
		w.wantFree("x")
		for how, end := range callbackFailures {
			panicked := inGoroutine(func() { _ = m.Do(background, func(context.Context) error { end(); return nil }) })
			if (panicked != nil) != (how == "panics") {
				t.Errorf("the function %s, and its caller recovers %v", how, panicked)
			}
			w.wantFree("x")
		}
	})
}

func TestDoWithANilFunctionClaimsNothing(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		for what, err := range map[string]error{
			"Mutex.Do":        c.Mutex("x").Do(background, nil),
			"Mutex.TryDo":     errOf(c.Mutex("x").TryDo(background, nil)),
			"RWMutex.Do":      c.RWMutex("x").Do(background, nil),
			"RWMutex.TryDo":   errOf(c.RWMutex("x").TryDo(background, nil)),
			"RWMutex.RDo":     c.RWMutex("x").RDo(background, nil),
			"RWMutex.TryRDo":  errOf(c.RWMutex("x").TryRDo(background, nil)),
			"Semaphore.Do":    c.Semaphore("x", 2).Do(background, nil),
			"Semaphore.TryDo": errOf(c.Semaphore("x", 2).TryDo(background, nil)),
			"Group.Do":        pawl.All(c.Mutex("x")).Do(background, nil),
			"Group.TryDo":     errOf(pawl.All(c.Mutex("x")).TryDo(background, nil)),
			"Once.Do":         errOf(c.Once("x").Do(background, "1", nil)),
			"Once.TryDo":      errOf(c.Once("x").TryDo(background, "1", nil)),
			"Election.Run":    c.Election("x").Run(background, nil),
		} {
			if !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		wantEqual(t, "the last fence", w.entry("x").Fence, 0)
		wantRun(t, true)(c.Once("x").Do(background, "1", func(context.Context) error { return nil }))
	})
}

func TestTheFunctionOfDoHasTheFenceAndEndsWithItsCtxOrLease(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		ctx, cancel := context.WithCancel(background)
		err := c.Mutex("x").Do(ctx, func(ctx context.Context) error {
			w.wantFenceOf(ctx, "x")
			cancel() // the end of the caller's ctx ends the function's ctx
			<-ctx.Done()
			return ctx.Err()
		})
		isError(t, err, context.Canceled)
		w.wantFree("x")

		other, _ := w.client(nil)
		for _, result := range []func(context.Context) error{context.Cause, func(context.Context) error { return nil }} {
			err = c.Mutex("x").Do(background, func(ctx context.Context) error {
				forced := must(other.Mutex("x").ForceLock(background))(t)
				<-ctx.Done() // the loss ends it, too
				isError(t, context.Cause(ctx), pawl.ErrLost)
				noError(t, forced.Release(background))
				return result(ctx)
			})
			if _, ok := err.(*pawl.LostError); !ok {
				t.Errorf("%v is not a single *pawl.LostError", err)
			}
		}
	})
}

func TestTryDoReportsThatItsFunctionWasSkipped(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, net, other := w.twoWithNetwork()
		must(a.Mutex("x").Lock(background))(t)
		for _, try := range []func(context.Context, func(context.Context) error) (bool, error){
			b.Mutex("x").TryDo, b.RWMutex("x").TryDo, b.RWMutex("x").TryRDo, b.Semaphore("x", 1).TryDo,
			b.Semaphore("x", 2).Permits(2).TryDo, pawl.All(b.Mutex("w"), b.Mutex("x")).TryDo, pawl.All(b.Mutex("x"), other.Mutex("x2")).TryDo,
		} {
			never := func(context.Context) error { t.Error("the function ran"); return nil }
			wantRun(t, false)(try(background, never))
			up := net.down()
			wantRun(t, false, pawl.ErrUnavailable)(try(background, never))
			up()
		}
		wantRun(t, true, pawl.ErrHeld)(b.Mutex("y").TryDo(background, func(ctx context.Context) error {
			return errOf(b.Mutex("x").TryLock(ctx))
		}))
	})
}

// If no signal reports a loss in time, the release detects it.
func TestDoReturnsALossThatItsReleaseDetects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, net := w.client(&pawl.Options{Observer: events.observer()})
		net.noSignals = true
		other, _ := w.client(nil)
		force := func(context.Context) error {
			return must(other.Mutex("x").ForceLock(background))(t).Release(background)
		}
		own := errors.New("own")
		finished := func(err error) bool {
			lost, ok := errors.AsType[*pawl.LostError](err)
			return ok && lost.Finished
		}
		err := c.Mutex("x").Do(background, force)
		if isError(t, err, pawl.ErrLost); !finished(err) {
			t.Errorf("%v: the work was done, but Finished is false", err)
		}
		if err := pawl.All(c.Mutex("w"), c.Mutex("x")).Do(background, force); !finished(err) {
			t.Errorf("%v: the work was done under both locks, but Finished is false", err)
		}
		if err := c.Mutex("x").Do(background, func(ctx context.Context) error { return errors.Join(force(ctx), own) }); finished(err) {
			t.Errorf("%v: the work failed, but Finished is true", err)
		}
		isError(t, c.Mutex("x").Do(background, func(ctx context.Context) error { _ = force(ctx); return own }), pawl.ErrLost, own)
		wantRun(t, true, pawl.ErrLost)(c.RWMutex("x").TryRDo(background, force))
		events.checkBalance(t)
		wantEqual(t, "reported losses", events.count("lost"), 5)
	})
}

func TestDoDoesNotBeginOnALeaseThatIsLost(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, other *pawl.Client, _ *network) {
		c, _ := w.client(&pawl.Options{Observer: &pawl.Observer{Acquired: func(e pawl.AcquiredEvent) {
			noError(t, must(other.Mutex("x").ForceLock(background))(t).Release(background))
			<-e.Lease.Done()
		}}})
		f := func(context.Context) error { t.Error("the function ran"); return nil }
		isError(t, c.Mutex("x").Do(background, f), pawl.ErrLost)
		wantRun(t, false, pawl.ErrLost)(c.Mutex("x").TryDo(background, f))
		w.wantFree("x")
	})
}

// The ctx of f ends before the name is free, so goroutines that f started can stop.
func TestDoEndsTheCtxOfItsFunctionBeforeItReleasesTheName(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		var given context.Context
		net.setHooks(func(op string) error {
			if op == "release" && given.Err() == nil {
				t.Error("the name is released before the ctx has ended")
			}
			return nil
		}, nil)
		noError(t, c.Mutex("x").Do(background, func(ctx context.Context) error {
			given = ctx //nolint:fatcontext // the test reads it after the function
			return nil
		}))
	})
}

func TestFenceOfEachNameIsFoundInsideNestedDos(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		noError(t, c.Mutex("outer").Do(background, func(ctx context.Context) error {
			return c.Mutex("inner").Do(ctx, func(ctx context.Context) error {
				w.wantFenceOf(ctx, "outer")
				w.wantFenceOf(ctx, "inner")
				lease := must(c.Mutex("held").Lock(ctx))(t)
				w.wantFenceOf(lease.Context(), "outer")
				w.wantFenceOf(lease.Context(), "held")
				if _, ok := pawl.FenceOf(ctx, "held"); ok {
					t.Error("the ctx has a fence of a lease that it does not carry")
				}
				return lease.Release(ctx)
			})
		}))
		if _, ok := pawl.FenceOf(background, "outer"); ok {
			t.Error("a ctx without a lease has a fence")
		}
	})
}

func TestTheLeaseIsInTheContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		if _, ok := pawl.LeaseOf(background, "x"); ok {
			t.Error("a ctx without a lease has one")
		}
		noError(t, a.Mutex("x", pawl.WithMaxHold(9*time.Second)).Do(background, func(ctx context.Context) error {
			ctx = must(a.Mutex("inner").Lock(ctx))(t).Context() // of another name
			lease, ok := pawl.LeaseOf(ctx, "x")
			if !ok || lease.Name() != "x" {
				t.Errorf("LeaseOf returns %v, %v; want the lease of x", lease, ok)
			}
			time.Sleep(8*time.Second + 95*time.Millisecond)
			return lease.Confirm(ctx) // with less of the maximum hold left than the shortest TTL
		}))
	})
}

func TestPermitsAndRLockerLockOnlyTheirPart(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		s, rw := c.Semaphore("s", 3), c.RWMutex("rw")
		err := s.Permits(2).Do(background, func(ctx context.Context) error {
			isError(t, errOf(s.Permits(2).TryLock(ctx)), pawl.ErrHeld)
			ran, err := s.Permits(1).TryDo(ctx, func(context.Context) error { return nil })
			wantEqual(t, "ran with the third permit", ran, true)
			return err
		})
		isError(t, err, nil)
		err = rw.RLocker().Do(background, func(ctx context.Context) error {
			isError(t, errOf(rw.TryLock(ctx)), pawl.ErrHeld)
			return errOf(rw.RLocker().TryDo(ctx, func(context.Context) error { return nil }))
		})
		isError(t, err, nil)
		isError(t, s.Permits(4).Do(background, func(context.Context) error { return nil }), pawl.ErrInvalid)
		w.wantFree("s", "rw")
	})
}
