package pawl_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestLeaseIsPassedOnInsideTheProcessWithFencesOfItsOwn(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		net.latency = 10 * time.Microsecond
		var mu sync.Mutex
		var last uint64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 10 {
					l := must(c.Mutex("x").Lock(background))(t)
					mu.Lock()
					if l.Fence() <= last {
						t.Errorf("a lease has the fence %d, after %d", l.Fence(), last)
					}
					last = l.Fence()
					mu.Unlock()
					noError(t, l.Release(background))
				}
			})
		}
		wg.Wait()
		wantWithin(t, "requests for 640 locks", net.count("acquire"), 0, 50)
		w.wantFree("x")
		wantNothingLeft(t, c)
	})
}

func TestAnotherProcessWaitsNoLongerThanAHandoffAndAHold(t *testing.T) {
	const handoff, hold = 10 * time.Millisecond, 3 * time.Millisecond
	inWorld(t, func(t *testing.T, w *world) {
		busy, other := w.twoClients()
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for ctx.Err() == nil {
					l := must(busy.Mutex("x").Lock(background))(t)
					time.Sleep(hold)
					noError(t, l.Release(background))
				}
			})
		}
		for range 50 {
			time.Sleep(7 * time.Millisecond)
			began := time.Now()
			l := must(other.Mutex("x").Lock(background))(t)
			wantWithin(t, "the other process waited", time.Since(began), 0, handoff+hold)
			noError(t, l.Release(background))
		}
		cancel()
		wg.Wait()
	})
}

// TestALeaseServesOnlyAClaimThatAskedForTheSame tries every field of a claim.
func TestALeaseIsPassedOnlyToAClaimForTheSame(t *testing.T) {
	for name, other := range map[string]func(c *pawl.Client) func(context.Context) (*pawl.Lease, error){
		"the same":     lockWith(nil),
		"reader":       func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) { return c.RWMutex("x").RLock },
		"other labels": lockWith(pawl.WithLabel("a", "b")),
		"health":       lockWith(pawl.WithHealth(func(context.Context) error { return nil })),
	} {
		withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
			held := lockWithFencesToSpare(t, w, c)
			holder := w.entry("x").Holders[0].Fence
			got := make(chan *pawl.Lease)
			go func() { got <- must(other(c)(background))(t) }()
			synctest.Wait()
			noError(t, held.Release(background))
			l := <-got
			wantEqual(t, name+" was passed on", w.entry("x").Holders[0].Fence == holder, name == "the same")
			noError(t, l.Release(background))
		})
	}
}

// lockWith returns the Lock of a mutex with an option.
func lockWith(o pawl.LockOption) func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) {
	return func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) { return c.Mutex("x", o).Lock }
}

// Each unused fence moves the next fence a microsecond ahead of the backend's clock. If
// the backend then loses its data, the next fences are smaller.
func TestFencesAreReservedOnlyForWaitersThatALeaseCanBePassedTo(t *testing.T) {
	const waiters = 64
	jobLabel := func(i int) pawl.LockOption { return pawl.WithLabel("job", strconv.Itoa(i)) }
	for what, lock := range map[string]func(c *pawl.Client, i int) func(context.Context) (*pawl.Lease, error){
		"labels of their own": func(c *pawl.Client, i int) func(context.Context) (*pawl.Lease, error) {
			return c.Mutex("x", jobLabel(i)).Lock
		},
		"two kinds in turn": func(c *pawl.Client, i int) func(context.Context) (*pawl.Lease, error) {
			return c.Mutex("x", jobLabel(i%2)).Lock
		},
		"two kinds in pairs": func(c *pawl.Client, i int) func(context.Context) (*pawl.Lease, error) {
			return c.Mutex("x", jobLabel(i/2%2)).Lock
		},
		"a maximum hold": func(c *pawl.Client, _ int) func(context.Context) (*pawl.Lease, error) {
			return c.Mutex("x", pawl.WithMaxHold(time.Minute)).Lock
		},
		"readers and writers": func(c *pawl.Client, i int) func(context.Context) (*pawl.Lease, error) {
			if i%2 == 0 {
				return c.RWMutex("x").RLock
			}
			return c.RWMutex("x").Lock
		},
	} {
		withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
			held := must(c.Mutex("x", jobLabel(-1)).Lock(background))(t)
			var wg sync.WaitGroup
			for i := range waiters {
				wg.Go(func() { noError(t, must(lock(c, i)(background))(t).Release(background)) })
				synctest.Wait()
			}
			noError(t, held.Release(background))
			wg.Wait()
			if last := w.entry("x").Fence; last > held.Fence()+waiters+4 { // the last waiters may lock again
				t.Errorf("%s: %d fences for %d leases", what, last-held.Fence(), waiters)
			}
		})
	}
}

// A lease may be taken by force just before it is released, and a later Lock must get a
// greater fence. So after a signal, the lease is not passed on until the backend has
// answered that it still holds.
func TestHoldThatMayBeLostIsNotPassedOn(t *testing.T) {
	for name, signal := range map[string]driver.Signal{"to the holder": {Kind: driver.SignalLost}, "to all clients": {Kind: driver.SignalRetry}} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, net := w.client(&pawl.Options{HandoffWindow: 100 * time.Millisecond})
			b, _ := w.client(nil)
			var token driver.Token
			net.onClaim = func(t driver.Token) { token = t }
			held := lockWithFencesToSpare(t, w, a)
			tokenHeld := token
			net.setLatency(10 * time.Millisecond)
			net.dropSignals()

			forced := must(b.Mutex("x").ForceLock(background))(t)
			if signal.Kind == driver.SignalLost {
				signal.Token = tokenHeld
			}
			net.deliver(signal)
			synctest.Wait() // the renewal that checks the lease is on its way
			later := startLock(t, a.Mutex("x"))
			isError(t, held.Release(background), pawl.ErrLost)
			noError(t, forced.Release(background))
			l := <-later
			if l.Fence() <= forced.Fence() {
				t.Errorf("fence %d, after ForceLock got %d", l.Fence(), forced.Fence())
			}
			noError(t, l.Release(background))
		})
	}
}

func TestHoldThatWasCheckedIsPassedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{HandoffWindow: 100 * time.Millisecond})
		held := lockWithFencesToSpare(t, w, a)
		net.deliver(driver.Signal{Kind: driver.SignalRetry})
		synctest.Wait() // the client has checked the lease, which still holds
		before := net.count("acquire")
		later := startLock(t, a.Mutex("x"))
		noError(t, held.Release(background))
		noError(t, (<-later).Release(background))
		wantEqual(t, "claims", net.count("acquire")-before, 0)
	})
}

// Without push a waiter polls. But when its own process releases the lock, it claims the
// lock at once.
func TestAWaiterClaimsAtOnceWhenItsOwnProcessReleasesTheLock(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		net.noPush, net.noSignals = true, true
		held := must(c.Mutex("x").Lock(background))(t)
		got := make(chan time.Time)
		go func() {
			l := must(c.Mutex("x").Lock(background))(t)
			got <- time.Now()
			noError(t, l.Release(background))
		}()
		time.Sleep(time.Second)
		released := time.Now()
		noError(t, held.Release(background))
		wantEqual(t, "from the release to the next grant", (<-got).Sub(released), 0)
		synctest.Wait()
	})
}

func TestTheFirstWaiterQueuesInTheBackendWhileTheLastLeaseOfARangeIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		l := waiterLine{t: t}
		other := must(b.Mutex("x").Lock(background))(t)
		ctx, cancel := context.WithCancel(background)
		l.wg.Go(func() {
			isError(t, errOf(a.Mutex("x").Lock(ctx)), context.Canceled)
		})
		synctest.Wait()
		for range 3 {
			l.join("a", a)
		}
		cancel() // so the next waiter claims, with a fence for each of the three
		synctest.Wait()
		noError(t, other.Release(background))
		l.join("A", a)                      // no fence is left for this waiter
		time.Sleep(2500 * time.Microsecond) // the last of the three holds the lock
		l.join("b", b)
		l.wg.Wait()
		wantEqual(t, "the order", l.served, "aaaAb")
	})
}
