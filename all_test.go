package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func TestAGroupHoldsAllItsLocksOrNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		three := func(c *pawl.Client) *pawl.Group {
			return pawl.All(c.Semaphore("z", 4).Permits(2), c.Mutex("a"), c.RWMutex("m").RLocker(), c.Mutex("a"))
		}
		leases := must(three(a).Lock(background))(t)
		if leases.Fence("a") == 0 || leases.Fence("m") == 0 || leases.Fence("z") == 0 || leases.Fence("b") != 0 {
			t.Error("Fence returns 0 for a name of the Group, or a fence for another name")
		}
		_, err := three(b).TryLock(background)
		held, _ := errors.AsType[*pawl.HeldError](err)
		if held == nil || held.Name != "a" {
			t.Fatalf("the error is %v, want a HeldError of a", err)
		}
		other := must(b.RWMutex("m").RLock(background))(t)
		noError(t, leases.Release(background))
		noError(t, leases.Release(background))
		isError(t, leases.Err(), pawl.ErrReleased)
		isError(t, context.Cause(leases.Context()), pawl.ErrReleased)

		// The second lock is held, so the Group releases the first.
		_, err = pawl.All(a.Mutex("a"), a.Mutex("m"), a.Mutex("z")).TryLock(background)
		held, _ = errors.AsType[*pawl.HeldError](err)
		if held == nil || held.Name != "m" {
			t.Fatalf("the error is %v, want a HeldError of m", err)
		}
		w.wantFree("a")
		ctx := timeoutCtx(t, time.Second)
		isError(t, errOf(pawl.All(a.Mutex("a"), a.Mutex("m")).Lock(ctx)), context.DeadlineExceeded, pawl.ErrHeld)
		w.wantFree("a")
		noError(t, other.Release(background))
		w.wantFree("m", "z")
	})
}

func TestALostLockEndsTheWholeGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, other := w.twoClients()
		locks := pawl.All(a.Mutex("x"), a.Mutex("y"))
		leases := must(locks.Lock(background))(t)
		noError(t, other.Break(background, "y", leases.Fence("y"), &pawl.BreakOptions{Delay: time.Minute}))
		<-leases.Done()
		lost, _ := errors.AsType[*pawl.LostError](context.Cause(leases.Context()))
		if lost == nil || lost.Name != "y" {
			t.Errorf("the cause is %v, want the loss of y", context.Cause(leases.Context()))
		}
		isError(t, leases.Err(), pawl.ErrLost)
		isError(t, leases.Release(background), pawl.ErrLost)
		w.wantFree("x")
		time.Sleep(time.Minute)

		wantRun(t, true, pawl.ErrLost)(locks.TryDo(background, func(ctx context.Context) error {
			fence, _ := pawl.FenceOf(ctx, "x")
			noError(t, a.Break(background, "x", fence, noDelay))
			<-ctx.Done()
			return nil
		}))
		synctest.Wait()
		w.wantFree("y")
	})
}

func TestBadSetsOfLocksAreRefusedBeforeAnythingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		for _, bad := range []*pawl.Group{
			pawl.All(), pawl.All(nil), pawl.All(a.Mutex("x"), a.RWMutex("x").RLocker()),
			pawl.All(a.Mutex("x"), b.Mutex("x")), // of two clients of one backend
			pawl.All(a.Mutex("x"), a.Semaphore("y", 2).Permits(3)), pawl.All(a.Mutex("x"), a.Mutex("")),
		} {
			isError(t, errOf(bad.Lock(background)), pawl.ErrInvalid)
		}
		wantEqual(t, "requests", net.count("acquire"), 0)
	})
}

func TestAllRefusesANameTwiceWithDifferentKindsOrOptions(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, _ *network) {
		lease := must(c.Mutex("x", pawl.WithValue([]byte("5"))).Lock(background))(t)
		noError(t, lease.Release(background))
		for name, other := range map[string]pawl.Lockable{
			"a condition": c.Mutex("x", pawl.WithValueBelow([]byte("1"))),
			"a TTL":       c.Mutex("x", pawl.WithTTL(time.Minute)),
			"a label":     c.Mutex("x", pawl.WithLabel("a", "b")),
			"a reader":    c.RWMutex("x").RLocker(),
		} {
			for _, all := range []*pawl.Group{pawl.All(c.Mutex("x"), other), pawl.All(other, c.Mutex("x"))} {
				if _, err := all.TryLock(background); !errors.Is(err, pawl.ErrInvalid) {
					t.Errorf("with %s TryLock returns %v, want ErrInvalid", name, err)
				}
			}
		}
		same := pawl.WithLabel("a", "b")
		leases := must(pawl.All(c.Mutex("x", same), c.Mutex("x", same)).TryLock(background))(t)
		noError(t, leases.Release(background))
	})
}

// Callers that release at the same time wait for the first and return the same error, in
// virtual time, too.
func TestConcurrentReleasesOfAGroupReturnTheSame(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		leases := must(pawl.All(c.Mutex("x"), c.Mutex("y")).Lock(background))(t)
		net.setLatency(time.Second)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { noError(t, leases.Release(background)) })
		}
		took, _ := timed(func() error { wg.Wait(); return nil })
		wantEqual(t, "requests", net.count("release"), 2)
		wantWithin(t, "the releases took", took, 0, 2*time.Second)
		noError(t, leases.Release(background))
	})
}

// When ctx ends, the client releases in the background the locks that it has got. If the
// backend hangs, each release takes as long as a request may.
func TestLockOfAGroupEndsWithItsCtxThoughTheBackendHangs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.slowClient(nil, func(op string, n int) time.Duration {
			if op == "release" && n <= 2 {
				return -1
			}
			return 0
		})
		other, _ := w.client(nil)
		held := must(other.Mutex("z").Lock(background))(t)
		ctx := timeoutCtx(t, time.Second)
		began := time.Now()
		isError(t, errOf(pawl.All(c.Mutex("x"), c.Mutex("y"), c.Mutex("z")).Lock(ctx)), context.DeadlineExceeded, pawl.ErrHeld)
		wantEqual(t, "Lock took", time.Since(began), time.Second)
		time.Sleep(10 * time.Second)
		w.wantFree("x", "y")
		noError(t, held.Release(background))
	})
}

// The first lock is granted, and lost because its backend no longer answers, before the
// second backend grants the other lock.
func TestLockOfAGroupDoesNotWaitForABackendThatLostItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, silent := w.client(&pawl.Options{TTL: time.Second})
		other := &world{t: t, memory: memlock.NewMemory(nil)}
		b, slow := other.client(nil)
		silent.setStuck(func(op string, _ int) bool { return op != "acquire" })
		slow.setLatency(2 * time.Second)
		took, err := timed(func() error { return errOf(pawl.All(a.Mutex("a"), b.Mutex("b")).TryLock(background)) })
		isError(t, err, pawl.ErrLost)
		wantEqual(t, "the time until TryLock returned", took, 2*time.Second)
		time.Sleep(10 * time.Second)
		other.wantFree("b")
	})
}
