package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// group is a Group of n mutexes.
func group(c *pawl.Client, n int, o ...pawl.LockOption) *pawl.Group {
	parts := make([]pawl.Lockable, n)
	for i := range parts {
		parts[i] = c.Mutex(fmt.Sprintf("x%03d", i), o...)
	}
	return pawl.All(parts...)
}

// maxRequestTime is the longest time that a request for these leases may take.
const maxRequestTime = 3 * time.Second

func allRequests(string, int) bool { return true }

func TestReleasingAGroupTakesTheTimeOfOneRequestThoughTheBackendHangs(t *testing.T) {
	for _, n := range []int{1, 2, 10, 65, 500} {
		runInWorld(t, fmt.Sprint(n), func(t *testing.T, w *world) {
			c, net := w.client(nil)
			hour := pawl.WithTTL(time.Hour)
			for _, end := range []func(l *pawl.GroupLease, ctx context.Context) error{
				(*pawl.GroupLease).Release, (*pawl.GroupLease).ReleaseUnused,
			} {
				leases := must(group(c, n, hour).Lock(background))(t)
				net.setStuck(allRequests)
				took, err := timed(func() error { return end(leases, background) })
				isError(t, err, pawl.ErrUnavailable)
				wantWithin(t, "the release took", took, 0, maxRequestTime)
				net.setStuck(nil)
				time.Sleep(time.Minute) // the client repeats the releases
			}
			var began time.Time
			err := group(c, n, hour).Do(background, func(context.Context) error {
				net.setStuck(allRequests)
				began = time.Now()
				return nil
			})
			noError(t, err)
			wantWithin(t, "Do returned after its function by", time.Since(began), 0, maxRequestTime)
			net.setStuck(nil)
			time.Sleep(time.Minute)
			for i := range n {
				w.wantFree(fmt.Sprintf("x%03d", i))
			}
		})
	}
}

func TestAGroupOfAnySizeGivesUpInTheSameTimeThoughTheBackendHangs(t *testing.T) {
	for _, n := range []int{2, 10, 65, 500} {
		runInWorld(t, fmt.Sprint(n), func(t *testing.T, w *world) {
			c, net := w.client(&pawl.Options{RetryFor: time.Second})
			net.oneByOne = true
			locks := group(c, n, pawl.WithTTL(time.Hour))
			for _, x := range []struct{ timeout, most time.Duration }{
				{time.Minute, 2*maxRequestTime + time.Second}, // the request that fails, its pause, and the releases
				{maxRequestTime + time.Second, maxRequestTime + time.Second},
				{time.Second, time.Second},
			} {
				before := net.count("acquire")
				net.setStuck(func(op string, k int) bool { return op == "release" || op == "acquire" && k >= before+n })
				ctx, cancel := context.WithTimeout(background, x.timeout)
				took, err := timed(func() error { return errOf(locks.Lock(ctx)) })
				cancel()
				if err == nil || took > x.most {
					t.Errorf("with a ctx of %v Lock took %v and returned %v; want an error after %v at most", x.timeout, took, err, x.most)
				}
				net.setStuck(nil)
				time.Sleep(time.Minute)
				for i := range n {
					w.wantFree(fmt.Sprintf("x%03d", i))
				}
			}
		})
	}
}

// The client sends all releases at once. After Done is closed, Err says why.
func TestAGroupReleasesItsLeasesInParallel(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		leases := must(group(c, 65).Lock(background))(t)
		net.setLatency(time.Second)
		done := make(chan error)
		go func() { <-leases.Done(); done <- leases.Err() }()
		took := must(timed(func() error { return leases.Release(background) }))(t)
		isError(t, <-done, pawl.ErrReleased)
		// The first lease is released after the others, or after a tenth of a second.
		wantEqual(t, "releases", net.count("release"), 65)
		wantWithin(t, "Release took", took, 0, 1100*time.Millisecond)
	})
}

// The first name of a Group is free after the others: see GroupLease.Release.
func TestTheFirstNameOfAGroupIsReleasedLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var released []string
		a, net := w.client(&pawl.Options{Observer: &pawl.Observer{Released: func(e pawl.ReleasedEvent) { released = append(released, e.Name) }}})
		leases := must(pawl.All(a.Mutex("y"), a.Mutex("x")).Lock(background))(t)
		net.setLatency(20 * time.Millisecond)
		time.AfterFunc(15*time.Millisecond, func() { // the first release has arrived, and is not answered yet
			if x, y := w.entry("x"), w.entry("y"); len(x.Holders) != 1 || len(y.Holders) != 0 {
				t.Errorf("while y is released, x is %+v, and y is %+v; want x held and y free", x, y)
			}
		})
		noError(t, leases.Release(background))
		if fmt.Sprint(released) != "[y x]" {
			t.Errorf("the names were released in the order %v, want [y x]", released)
		}
	})
}

func TestReleaseUnusedOfAGroupIgnoresTheMinimumHold(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		locks := group(c, 2, pawl.WithMinHold(time.Minute))
		leases := must(locks.Lock(background))(t)
		noError(t, leases.ReleaseUnused(background))
		noError(t, leases.Release(background))
		w.wantFree("x000", "x001")
		noError(t, locks.Do(background, func(context.Context) error { return nil }))
		isError(t, errOf(locks.TryLock(background)), pawl.ErrHeld)
	})
}

func TestALeaseOfAGroupIsFoundByItsName(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, _ *network) {
		leases := must(pawl.All(c.Namespace("a").Mutex("x"), c.Mutex("y")).Lock(background))(t)
		for name, stored := range map[string]string{"x": "@a:x", "@a:x": "@a:x", "y": "y"} {
			if l := leases.Lease(name); l.StoredName() != stored || l.Fence() != leases.Fence(name) {
				t.Errorf("the lease of %q is %v, want the lease of %q", name, l, stored)
			}
		}
		noError(t, leases.Lease("x").Confirm(background))
		var none *pawl.GroupLease
		if leases.Lease("z") != nil || none.Lease("x") != nil {
			t.Error("a name that is not held has a lease")
		}
		noError(t, leases.Release(background))
	})
}

// If an Observer panics, or ends its goroutine, the caller panics or ends, too, and all
// other leases are released.
func TestAnObserverThatFailsAtOneLeaseReleasesTheOthers(t *testing.T) {
	for how, fail := range callbackFailures {
		for at := range 4 {
			runInWorld(t, fmt.Sprint(how, " at ", at), func(t *testing.T, w *world) {
				c, _ := w.client(&pawl.Options{Observer: &pawl.Observer{Released: func(e pawl.ReleasedEvent) {
					if e.Name == fmt.Sprintf("x%03d", at) {
						fail()
					}
				}}})
				leases := must(group(c, 4).Lock(background))(t)
				returned := false
				panicked := inGoroutine(func() {
					_ = leases.Release(background)
					returned = true
				})
				if returned || (how == "panics") != (panicked != nil) {
					t.Errorf("Release returned: %v, and panicked with %v", returned, panicked)
				}
				for i := range 4 {
					w.wantFree(fmt.Sprintf("x%03d", i))
				}
				noError(t, leases.Release(background))
				isError(t, context.Cause(leases.Context()), pawl.ErrReleased)
			})
		}
	}
}
