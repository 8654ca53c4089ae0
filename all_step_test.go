package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestAllTakesFreeLocksInOneStep(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		locks := pawl.All(a.Mutex("x"), a.RWMutex("y").RLocker(), a.Semaphore("z", 3).Permits(2))
		for range 3 {
			leases := must(locks.Lock(background))(t)
			for _, name := range []string{"x", "y", "z"} {
				if e, err := a.Inspect(background, name); err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != leases.Fence(name) {
					t.Errorf("%q is %+v, %v; want it held with the fence %d", name, e, err, leases.Fence(name))
				}
			}
			noError(t, leases.Release(background))
		}
		wantEqual(t, "steps for three times three locks", net.count("acquire all"), 3)
		wantEqual(t, "single claims", net.count("acquire"), 0)
	})
}

// Claims that may have been granted are released at once. A caller that may wait then
// tries again, unless the step may have written a value: that value would refuse the next
// attempt, although no other client has written it.
func TestAStepWhoseAnswerIsLostLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"))
		lose := failRequests("acquire all")
		net.setHooks(nil, lose)
		isError(t, errOf(locks.TryLock(background)), pawl.ErrUnavailable)
		synctest.Wait()
		noError(t, must(b.Mutex("x").TryLock(background))(t).Release(background))
		noError(t, must(b.Mutex("y").TryLock(background))(t).Release(background))

		leases := must(locks.Lock(background))(t)
		noError(t, leases.Release(background))
		w.wantFree("x", "y")

		value := []byte("5")
		_, err := pawl.All(a.Mutex("x", pawl.WithValue(value), pawl.WithValueBelow(value)), a.Mutex("y")).Lock(background)
		isError(t, err, pawl.ErrUnavailable)
		if errors.Is(err, pawl.ErrValueNotBelow) {
			t.Errorf("Lock returns %v, although no other client has written the value", err)
		}
	})
}

func TestAStepEndsWithItsCtx(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"))
		for _, lock := range []func(context.Context) (*pawl.GroupLease, error){locks.Lock, locks.TryLock} {
			net.setLatency(10 * time.Second)
			ctx, cancel := context.WithTimeout(background, time.Second)
			took, err := timed(func() error { return errOf(lock(ctx)) })
			cancel()
			isError(t, err, context.DeadlineExceeded)
			wantEqual(t, "the lock took", took, time.Second)
			net.setLatency(0)
			time.Sleep(time.Minute)
			w.wantFree("x", "y")
		}
		holder := must(b.Mutex("y").Lock(background))(t)
		ctx, cancel := context.WithCancel(background)
		net.setHooks(nil, func(string) error { cancel(); return nil }) // while the refusal is on its way
		for range 2 {
			isError(t, errOf(locks.Lock(ctx)), context.Canceled)
		}
		noError(t, holder.Release(background))
		noError(t, a.Close())
		isError(t, errOf(locks.Lock(background)), pawl.ErrClosed)
	})
}

func TestTheObserverGetsEachClaimOfAStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		counts := map[string]int{}
		note := func(what, name string) { counts[what+" "+name]++ }
		a, net := w.client(&pawl.Options{Observer: &pawl.Observer{
			Acquired:    func(e pawl.AcquiredEvent) { note("acquired", e.Name) },
			NotAcquired: func(e pawl.NotAcquiredEvent) { note("refused", e.Name) },
			Released:    func(e pawl.ReleasedEvent) { note("released", e.Name) },
			Failed: func(e pawl.FailedEvent) {
				note("failed "+string(e.Op), e.Name)
				if e.Claim != 0 || e.Count != 2 || e.Ctx.Value(spanKey{}) != "all" {
					t.Errorf("the event is %+v; want two claims, no claim number, and the ctx of the call", e)
				}
			},
		}})
		b, _ := w.client(nil)
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"))
		leases := must(locks.Lock(background))(t)
		noError(t, leases.Release(background))
		holder := must(b.Mutex("y").Lock(background))(t)
		isError(t, errOf(locks.TryLock(background)), pawl.ErrHeld)
		noError(t, holder.Release(background))
		net.setHooks(failRequests("acquire all"), nil)
		isError(t, errOf(locks.TryLock(spanCtx("all"))), pawl.ErrUnavailable)
		synctest.Wait()
		for what, n := range map[string]int{
			"acquired x": 1, "acquired y": 1, "released x": 1, "released y": 1,
			"refused y": 1, "refused x": 1, "failed acquire x": 1,
		} {
			wantEqual(t, what, counts[what], n)
		}
	})
}

// A panic of the Observer, or of the driver, leaves nothing held.
func TestAPanicInAStepLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		failing := true
		a, net := w.client(&pawl.Options{Observer: &pawl.Observer{Acquired: func(e pawl.AcquiredEvent) {
			if failing && e.Name == "y" {
				panic("observer")
			}
		}}})
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"), a.Mutex("z"))
		try := func() { _, _ = locks.TryLock(background) }
		wantEqual[any](t, "TryLock panicked with", inGoroutine(try), "observer")
		failing = false
		net.setHooks(nil, func(op string) error {
			if op == "acquire all" {
				panic("driver")
			}
			return nil
		})
		wantEqual[any](t, "TryLock panicked with", inGoroutine(try), "driver")
		net.setHooks(nil, nil)
		synctest.Wait()
		w.wantFree("x", "y", "z")
		leases := must(locks.TryLock(background))(t)
		noError(t, leases.Release(background))
	})
}

func TestAStepThatAValueRefusesIsNotRepeated(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		value := []byte("5")
		locks := pawl.All(a.Mutex("x"), a.Mutex("y", pawl.WithValue(value), pawl.WithValueBelow(value)))
		noError(t, locks.Do(background, func(context.Context) error { return nil }))
		_, err := locks.Lock(background)
		refused, ok := errors.AsType[*pawl.ValueNotBelowError](err)
		if !ok || refused.Name != "y" {
			t.Errorf("Lock: %v; want a *pawl.ValueNotBelowError of y", err)
		}
		wantEqual(t, "steps", net.count("acquire all"), 2)
		wantEqual(t, "single claims", net.count("acquire"), 0)
		w.wantFree("x")
	})
}

// All takes a single lock without a step, and a step has at most driver.MaxAll locks.
func TestAStepHasTwoToMaxAllLocks(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		for n, steps := range map[int]int{1: 0, 2: 1, driver.MaxAll: 1, driver.MaxAll + 1: 1, 2*driver.MaxAll + 2: 3} {
			var parts []pawl.Lockable
			for i := range n {
				parts = append(parts, a.Mutex(fmt.Sprint("x", i)))
			}
			before := net.count("acquire all")
			noError(t, pawl.All(parts...).Do(background, func(context.Context) error { return nil }))
			wantEqual(t, fmt.Sprint("steps for ", n, " locks"), net.count("acquire all")-before, steps)
		}
	})
}

// A step is not sent if claims of this client wait for one of the names, or if its ctx
// has ended. It leaves no inbox behind.
func TestAStepThatCannotSucceedIsNotSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"))
		endedCtx, cancel := context.WithCancel(background)
		cancel()
		isError(t, errOf(locks.TryLock(endedCtx)), context.Canceled)
		holder := must(b.Mutex("y").Lock(background))(t)
		waitCtx, stop := context.WithCancel(background)
		go a.Mutex("y").Lock(waitCtx)
		synctest.Wait()
		isError(t, errOf(locks.TryLock(background)), pawl.ErrHeld)
		wantEqual(t, "steps", net.count("acquire all"), 0)
		stop()
		synctest.Wait()
		isError(t, errOf(locks.TryLock(background)), pawl.ErrHeld)
		wantEqual(t, "inboxes", a.Inboxes(), 0)
		noError(t, holder.Release(background))

		ctx, cancel := context.WithCancel(background)
		net.setHooks(nil, func(op string) error {
			if op == "acquire all" {
				cancel() // while the grant is on its way
			}
			return nil
		})
		isError(t, errOf(locks.TryLock(ctx)), context.Canceled)
		w.wantFree("x", "y")
	})
}
