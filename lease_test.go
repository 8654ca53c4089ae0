package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestLeaseOutlivesTheCtxOfItsCall(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(background, key{}, "value"), time.Second)
		lease := must(c.Mutex("x").Lock(ctx))(t)
		cancel()
		time.Sleep(5 * time.Minute)
		noError(t, lease.Err())
		noError(t, lease.Context().Err())
		if lease.Context().Value(key{}) != "value" {
			t.Error("the context lost its values")
		}
		w.wantFenceOf(lease.Context(), "x")
		noError(t, lease.Release(ctx)) // although ctx is over
		isError(t, context.Cause(lease.Context()), pawl.ErrReleased)
		isError(t, lease.Err(), pawl.ErrReleased)
		w.wantFree("x")
	})
}

// A function that context.AfterFunc runs at the end of a lease may use the client.
func TestAFunctionThatRunsAfterALeaseMayUseTheClient(t *testing.T) {
	for how, end := range map[string]func(l *pawl.Lease, net *network, other *pawl.Client) error{
		"released": func(l *pawl.Lease, _ *network, _ *pawl.Client) error { return l.Release(background) },
		"lost":     func(l *pawl.Lease, net *network, _ *pawl.Client) error { defer net.down()(); <-l.Done(); return nil },
		"broken": func(l *pawl.Lease, _ *network, other *pawl.Client) error {
			return other.Break(background, "x", l.Fence(), noDelay)
		},
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			c, net, other := w.twoWithNetwork()
			lease := must(c.Mutex("x").Lock(background))(t)
			ended := make(chan uint64)
			context.AfterFunc(lease.Context(), func() {
				_ = lease.Release(background)
				again := must(c.Mutex("x").Lock(background))(t)
				noError(t, again.Release(background))
				ended <- again.Fence()
			})
			noError(t, end(lease, net, other))
			if fence := <-ended; fence <= lease.Fence() {
				t.Errorf("the next lease has the fence %d, after %d", fence, lease.Fence())
			}
			noError(t, c.Close())
			w.wantFree("x")
		})
	}
}

// StopBy is the earliest time at which the backend can grant the name again, and a waiter
// gets it then.
func TestStopByIsTheTimeOfTheNextGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		m := a.Mutex("x", pawl.WithLockDelay(time.Minute))
		noError(t, must(m.Lock(background))(t).Release(background))
		lease := must(m.TryLock(background))(t) // a release does not close the name
		granted := time.Now()
		net.down()
		<-lease.Done()
		lost := wantLoss(t, lease.Err(), pawl.ReasonUnreachable)
		must(b.Mutex("x").Lock(background))(t)
		wantWithin(t, "from StopBy to the next grant", time.Since(lost.StopBy), 0, 10*time.Millisecond)
		wantWithin(t, "the TTL and the lock-delay took", time.Since(granted), 90*time.Second, 90*time.Second+5*time.Millisecond)
	})
}
