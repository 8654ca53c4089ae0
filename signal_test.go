package pawl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// The backend may renew a lease and then lose it. The signal of the loss may arrive
// before the answer to the renewal, which says that the lease holds.
func TestLossThatIsSignaledDuringARenewalIsCheckedAtOnce(t *testing.T) {
	for name, toAll := range map[string]bool{"to the holder": false, "to all clients": true} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, net := w.client(nil)
			net.noSignals = toAll
			b, _ := w.client(nil)
			lease := must(a.Mutex("x").Lock(background))(t)
			var forced atomic.Bool
			net.setHooks(nil, func(op string) error {
				if op == "renew" && forced.CompareAndSwap(false, true) {
					must(b.Mutex("x").ForceLock(background))(t)
					if toAll {
						net.deliver(driver.Signal{Kind: driver.SignalRetry})
					}
				}
				return nil
			})
			for !forced.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			isError(t, context.Cause(lease.Context()), pawl.ErrLost)
		})
	}
}

// The signal may also arrive before the answer to the claim.
func TestLossThatIsSignaledBeforeTheGrantIsCheckedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		for name, claim := range map[string]func(context.Context) (*pawl.Lease, error){
			"try": a.Mutex("x").TryLock, "lock": a.Mutex("x").Lock, "force": a.Mutex("x").ForceLock,
		} {
			var taker *pawl.Lease
			net.setHooks(nil, func(op string) error {
				if op == "acquire" && taker == nil {
					taker = must(b.Mutex("x").ForceLock(background))(t)
				}
				return nil
			})
			lease := must(claim(background))(t)
			synctest.Wait()
			if cause := context.Cause(lease.Context()); cause == nil {
				t.Errorf("%s: the context of a lost lease has not ended", name)
			}
			net.setHooks(nil, nil)
			isError(t, lease.Release(background), pawl.ErrLost)
			noError(t, taker.Release(background))
			synctest.Wait()
			wantNothingLeft(t, a)
		}
	})
}

// A slow waiter gets two signals together: of its grant, and of its loss.
func TestGrantAndLossThatArriveTogetherAreALoss(t *testing.T) {
	for range 50 {
		withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
			b, net, c := w.twoWithNetwork()
			held := must(a.Mutex("x").Lock(background))(t)
			heldBack, stop := net.holdBack()
			defer stop()
			got := startLock(t, b.Mutex("x"))
			noError(t, held.Release(background))
			forced := must(c.Mutex("x").ForceLock(background))(t)
			if len(*heldBack) != 2 {
				t.Fatalf("the signals are %v, want a grant and a loss", *heldBack)
			}
			for _, s := range *heldBack {
				net.deliver(s)
			}
			synctest.Wait()
			select {
			case l := <-got:
				isError(t, l.Err(), pawl.ErrLost)
			default: // the waiter has claimed again, and waits
				noError(t, forced.Release(background))
				noError(t, (<-got).Release(background))
			}
		})
	}
}

// A grant may expire while a process is paused. The client must not take its signal for
// a later grant.
func TestOldSignalIsNotTakenForAGrant(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, net, c := w.twoWithNetwork()
		held := must(a.Mutex("x").Lock(background))(t)

		heldBack, stop := net.holdBack()
		defer stop()
		got := startLock(t, b.Mutex("x"))
		net.down() // b cannot renew the lease that it is granted now
		noError(t, held.Release(background))
		synctest.Wait()
		if len(*heldBack) != 1 || (*heldBack)[0].Kind != driver.SignalGranted {
			t.Fatalf("the signals are %v, want one grant", *heldBack)
		}
		time.Sleep(6 * time.Second) // b's grant has expired
		third := must(c.Mutex("x").Lock(background))(t)
		net.setHooks(nil, nil) // b reaches the backend again, and queues
		time.Sleep(4 * time.Second)
		net.deliver((*heldBack)[0]) // and now the old signal arrives
		synctest.Wait()
		select {
		case l := <-got:
			t.Fatalf("b has a lease with fence %d while %d is held", l.Fence(), third.Fence())
		default:
		}
		noError(t, third.Release(background))
		if l := <-got; l.Fence() <= third.Fence() {
			t.Errorf("the next lease has the fence %d, after %d", l.Fence(), third.Fence())
		}
	})
}

func TestRetrySignalMakesEveryWaiterAskAndEveryHolderCheck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, net, a := w.twoWithNetwork()
		net.noSignals = true
		held := must(a.Mutex("x").Lock(background))(t)
		got := startLock(t, b.Mutex("x"))
		broken := must(b.Mutex("y").Lock(background))(t)
		noError(t, held.Release(background))
		noError(t, a.Break(background, "y", broken.Fence(), noDelay))
		synctest.Wait()
		noError(t, broken.Err())
		net.deliver(driver.Signal{Kind: driver.SignalRetry})
		synctest.Wait()
		isError(t, broken.Err(), pawl.ErrLost)
		select {
		case <-got:
		default:
			t.Error("the waiter did not claim again")
		}
	})
}

// A driver may wrap another one, for example to trace it. With Unwrap it keeps the push
// of the inner driver. Without Unwrap the client knows that no signal comes, and polls.
func TestAWaiterBehindAWrappedDriverIsGrantedSoon(t *testing.T) {
	for what, wrap := range map[string]func(d driver.Driver) driver.Driver{
		"with Unwrap":    func(d driver.Driver) driver.Driver { return unwrappable{d} },
		"without Unwrap": func(d driver.Driver) driver.Driver { return struct{ driver.Driver }{d} },
	} {
		runInWorld(t, what, func(t *testing.T, w *world) {
			a, b := w.clientOf(wrap(w.memory.Driver()), nil), w.clientOf(wrap(w.memory.Driver()), nil)
			held := must(a.Mutex("x").Lock(background))(t)
			done := make(chan time.Time)
			go func() {
				noError(t, b.Mutex("x").Do(background, func(context.Context) error { done <- time.Now(); return nil }))
			}()
			time.Sleep(10 * time.Second)
			began := time.Now()
			noError(t, held.Release(background))
			most := map[string]time.Duration{"with Unwrap": 0, "without Unwrap": 300 * time.Millisecond}[what]
			wantWithin(t, "the lock was handed over after", (<-done).Sub(began), 0, most)
			synctest.Wait() // Do releases before the client is closed
		})
	}
}

type unwrappable struct{ driver.Driver }

func (u unwrappable) Unwrap() driver.Driver { return u.Driver }
