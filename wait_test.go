package pawl_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestThousandWaitersAreServedInOrderForTwoRequestsEach(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, net := w.client(&pawl.Options{HandoffWindow: -1})
		held := must(a.Mutex("x").Lock(background))(t)
		var mu sync.Mutex
		served := 0
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				l := must(b.Mutex("x").Lock(background))(t)
				mu.Lock()
				wantEqual(t, "the place in the order", served, i)
				served++
				mu.Unlock()
				noError(t, l.Release(background))
			})
			synctest.Wait()
		}
		noError(t, held.Release(background))
		wg.Wait()
		wantWithin(t, "requests", net.count("acquire")+net.count("release")+net.count("renew"), 0, 2*1000+10)
		w.wantFree("x")
	})
}

// No client sends a request when a minimum hold ends, or a name opens after a break. The
// waiter knows only the end of the TTL, which is later.
func TestAWaiterIsGrantedWhenTheNameOpensByItself(t *testing.T) {
	for name, end := range map[string]func(l *pawl.Lease, other *pawl.Client) error{
		"minimum hold": func(l *pawl.Lease, _ *pawl.Client) error { return l.Release(background) },
		"break": func(l *pawl.Lease, other *pawl.Client) error {
			return other.Break(background, "x", l.Fence(), &pawl.BreakOptions{Delay: 100 * time.Millisecond})
		},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, b := w.twoClients()
			c, _ := w.client(nil)
			began := time.Now()
			lease := must(a.Mutex("x", pawl.WithMinHold(100*time.Millisecond)).Lock(background))(t)
			for _, next := range []*pawl.Client{b, c} {
				go func() {
					l := must(next.Mutex("x").Lock(background))(t)
					wantWithin(t, "the next holder got the name after", time.Since(began), 100*time.Millisecond, 105*time.Millisecond)
					noError(t, l.Release(background))
				}()
			}
			synctest.Wait()
			noError(t, end(lease, c))
			time.Sleep(time.Minute)
			w.wantFree("x")
		})
	}
}

func TestWaitingWorksWithoutSignals(t *testing.T) {
	for name, disableSignals := range map[string]func(*network){
		"lost":        func(net *network) { net.noSignals = true },
		"unsupported": func(net *network) { net.noSignals, net.noPush = true, true },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			b, net, a := w.twoWithNetwork()
			disableSignals(net)
			lease := must(a.Mutex("x").Lock(background))(t)
			time.AfterFunc(time.Minute, func() { _ = lease.Release(background) })
			began := time.Now()
			must(b.Mutex("x").Lock(background))(t)
			bound := 2 * time.Second // a third of QueueTTL: the next keep-alive
			if net.noPush {
				bound = 250 * time.Millisecond
			}
			wantWithin(t, "from the release to the next grant", time.Since(began)-time.Minute, 0, bound)
		})
	}
}

// A waiter far from the head of a long queue renews its place less often, but keeps it.
func TestAWaiterFarFromTheHeadRenewsItsPlaceLessOften(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const waiters = 200
		holder, _ := w.client(nil)
		lease := must(holder.Mutex("x").Lock(background))(t)
		ctxOfOthers, leave := context.WithCancel(background)
		var nets [waiters]*network
		var mu sync.Mutex
		var granted []int
		for i := range waiters {
			c, net := w.client(nil)
			nets[i] = net
			ctx := background
			if i > 0 && i < waiters-1 {
				ctx = ctxOfOthers
			}
			go func() {
				if lease, err := c.Mutex("x").Lock(ctx); err == nil {
					mu.Lock()
					granted = append(granted, i)
					mu.Unlock()
					noError(t, lease.Release(background))
				}
			}()
			synctest.Wait()
		}
		claimsInAMinute := func(i int) int {
			before := nets[i].count("acquire")
			time.Sleep(time.Minute)
			return nets[i].count("acquire") - before
		}
		wantWithin(t, "claims of the head in a minute, three in each 5 s", claimsInAMinute(0), 36, 42)
		wantWithin(t, "claims of the last in a minute, three in each 20 s", claimsInAMinute(waiters-1), 9, 11)
		w.wantWaiters("x", waiters)
		leave()
		time.Sleep(10 * time.Second)
		wantWithin(t, "claims of the second in a minute, three in each 5 s", claimsInAMinute(waiters-1), 36, 42)
		noError(t, lease.Release(background))
		synctest.Wait()
		if !slices.Equal(granted, []int{0, waiters - 1}) {
			t.Errorf("the lock was granted to %v, want the first and the last waiter", granted)
		}
	})
}

func TestWithWaitBoundsOnlyTheWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		held := must(a.Mutex("x").Lock(background))(t)
		tenSeconds := pawl.WithWait(10 * time.Second)
		for what, lock := range map[string]func() error{
			"Mutex":      func() error { return errOf(b.Mutex("x", tenSeconds).Lock(background)) },
			"RWMutex":    func() error { return errOf(b.RWMutex("x", tenSeconds).RLock(background)) },
			"All":        func() error { return errOf(pawl.All(b.Mutex("w"), b.Mutex("x", tenSeconds)).Lock(background)) },
			"one client": func() error { return errOf(a.Mutex("x", tenSeconds).Lock(background)) },
		} {
			took, err := timed(lock)
			isError(t, err, pawl.ErrHeld)
			isError(t, err, context.DeadlineExceeded)
			wantWithin(t, what+" gave up after", took, 10*time.Second, 11*time.Second)
		}
		w.wantFree("w")
		time.AfterFunc(5*time.Second, func() { _ = held.Release(background) })
		noError(t, b.Mutex("x", tenSeconds).Do(background, func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}))
		both := pawl.All(b.Mutex("x", tenSeconds), b.Mutex("y", pawl.WithWait(time.Hour)))
		noError(t, both.Do(background, func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}))
		isError(t, b.Election("e", tenSeconds).Run(background, func(context.Context) error { return nil }), pawl.ErrInvalid)
		for _, bad := range []time.Duration{0, -1} {
			isError(t, errOf(b.Mutex("x", pawl.WithWait(bad)).Lock(background)), pawl.ErrInvalid)
		}
	})
}
