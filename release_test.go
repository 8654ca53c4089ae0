package pawl_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestLateReleaseDoesNotEndAnotherLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		old := must(a.Mutex("x").Lock(background))(t)
		net.down()
		current := must(b.Mutex("x").Lock(background))(t) // after the TTL of the old lease
		net.setHooks(nil, nil)
		isError(t, old.Release(background), pawl.ErrLost)
		synctest.Wait()
		if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != current.Fence() {
			t.Errorf("after the late release x is %+v, want only the lease with the fence %d", e, current.Fence())
		}
	})
}

func TestReleaseOfABrokenLeaseReturnsErrLost(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		net.noSignals = true
		b, _ := w.client(&pawl.Options{ID: "breaker"})
		lease := must(a.Mutex("x").Lock(background))(t)
		noError(t, b.Break(background, "x", lease.Fence(), noDelay))
		var lost *pawl.LostError
		if err := lease.Release(background); !errors.As(err, &lost) || lost.By.Client != "breaker" || lost.Fence != lease.Fence() {
			t.Errorf("Release returns %v, want a LostError by breaker with the fence %d", err, lease.Fence())
		}
	})
}

// The backend may still hold a lease that was lost, because the answers to its renewals
// were lost. Close does not know this lease, so Release releases it, even if Close has
// begun.
func TestReleaseOfALostLeaseGivesItBackThoughCloseHasBegun(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		lost := must(c.Mutex("lost").Lock(background))(t)
		net.setHooks(nil, failRequests("renew"))
		<-lost.Done()
		slow := must(c.Mutex("slow").Lock(background))(t)
		begun, answer := make(chan struct{}), make(chan struct{})
		net.setHooks(func(op string) error {
			if op == "release" {
				net.setHooks(nil, nil) // only the first release has to wait
				close(begun)
				<-answer
			}
			return nil
		}, nil)
		go func() { _ = slow.Release(background) }()
		<-begun
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait() // Close waits for the release of "slow"
		wantEqual(t, "holders of lost during Close", len(w.entry("lost").Holders), 1)
		isError(t, lost.Release(background), pawl.ErrLost)
		close(answer)
		noError(t, <-closed)
		w.wantFree("lost", "slow")
	})
}

// A renewal must not reach the backend after the release, whether it succeeds or fails.
func TestReleaseWaitsForARenewalUnderWay(t *testing.T) {
	for name, fails := range map[string]error{"answered": nil, "failed": errNet} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, net := w.client(nil)
			lease := must(c.Mutex("x").Lock(background))(t)
			var mu sync.Mutex
			var order []string
			net.setHooks(func(op string) error {
				if op == "renew" {
					time.Sleep(time.Second)
				}
				mu.Lock()
				defer mu.Unlock()
				if order = append(order, op); op == "renew" {
					return fails
				}
				return nil
			}, nil)
			for net.count("renew") == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			noError(t, lease.Release(background))
			if len(order) != 2 || order[0] != "renew" || order[1] != "release" {
				t.Errorf("the requests were %v, want renew and release", order)
			}
			time.Sleep(time.Minute)
			wantEqual(t, "renewals before and after the release", net.count("renew"), 1)
			w.wantFree("x")
		})
	}
}

// Later callers wait for the first one on a channel, not on a mutex: so virtual time goes
// on.
func TestConcurrentReleasesReturnTheSame(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		for _, failure := range []error{nil, errNet} {
			lease := must(c.Mutex("x").Lock(background))(t)
			net.setHooks(func(op string) error { return failure }, nil)
			net.setLatency(2 * time.Second)
			answers := make(chan error)
			began := time.Now()
			for range 3 {
				go func() { answers <- lease.Release(background) }()
			}
			first := <-answers
			for range 2 {
				if err := <-answers; !errors.Is(err, failure) || err != first {
					t.Errorf("one Release returns %v, another %v; want %v, the same error", first, err, failure)
				}
			}
			wantWithin(t, "the calls returned after", time.Since(began), time.Second, time.Minute)
			net.setHooks(nil, nil)
			net.setLatency(0)
			sent := net.count("release")
			if err := lease.Release(nil); err != first || failure == nil && sent != 1 { //nolint:staticcheck // a nil ctx must not keep a lock held
				t.Errorf("Release returned %v, and later %v, after %d requests; want the same error, after one request if it is nil", first, err, sent)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestSecondReleaseAfterADriversPanicReturnsAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, net := w.client(&pawl.Options{Observer: events.observer()})
		lease := must(c.Mutex("x").Lock(background))(t)
		var first sync.Once
		net.setHooks(func(op string) error { first.Do(func() { panic("a bug") }); return nil }, nil)
		inGoroutine(func() { _ = lease.Release(background) })
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		time.Sleep(time.Second)
		w.wantFree("x")
		events.checkBalance(t)
	})
}
