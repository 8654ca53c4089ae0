package pawl

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/trust"
	"github.com/pawl-go/pawl/memlock"
)

// A lease may be lost before its Lock has returned, because Close began or a signal came.
// Then the lease leaves nothing behind, and the Observer gets the loss after the grant.
func TestALossBeforeTheGrantIsReportedAfterIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		losses := 0
		c := must(New(memlock.New(nil), &Options{Observer: &Observer{Lost: func(LostEvent) { losses++ }}}))(t)
		defer c.Close()
		cl := must(c.Mutex("x").claim(context.Background(), driver.Exclusive, driver.Unlimited))(t)
		a := attempts{c: c.core, ctx: context.Background(), claim: cl, margin: cl.marginOf(cl.TTL)}
		h, now, err := a.run(c.now())
		noError(t, err)
		c.startRenewing(h, now)
		h.lose(LostError{Reason: ReasonExpired})
		lease := c.beginLease(nil, h, now)
		if lease.Err() == nil || lease.pendingEnd == nil || losses != 0 {
			t.Errorf("Err is %v, and %d losses were reported; want a loss that is not reported yet", lease.Err(), losses)
		}
		_ = lease.Release(context.Background())
		lease.announce(0)
		synctest.Wait()
		if losses != 1 {
			t.Errorf("%d losses were reported, want one", losses)
		}
		if n := c.LocalQueues() + c.Inboxes() + c.Leases(); n > 0 {
			t.Errorf("%d queues, inboxes and leases are left", n)
		}
	})
}

// Close may begin during a Release, after the lease has ended, and before the request has
// reached the backend. Then Close sends no release of its own. Otherwise the backend
// would answer the Release that the lease was lost.
func TestReleaseThatIsOvertakenByCloseIsNoLoss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		c := must(New(memory.Driver(), nil))(t)
		lease := must(c.Mutex("x").Lock(context.Background()))(t)
		c.releases.enter()
		_ = lease.finish(ErrReleased)
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		noError(t, lease.h.giveBack(context.Background(), c.now().Mono, lease))
		c.releases.leave()
		noError(t, <-closed)
		d := memory.Driver()
		defer d.Close()
		if e, _ := d.Inspect(context.Background(), "x"); len(e.Holders) > 0 {
			t.Errorf("still held: %+v", e)
		}
	})
}

// A hold is passed on only during its term. Its loss has the error of the last renewal.
func TestAHoldThatIsOverIsNotPassedOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := must(New(memlock.New(nil), nil))(t)
		defer c.Close()
		cl := must(c.Mutex("x").claim(context.Background(), driver.Exclusive, driver.Unlimited))(t)
		now := c.now()
		held := newHold(c.core, cl, now, trust.NewTerm(now, cl.TTL, cl.marginOf(cl.TTL)), 1, 10)
		if held.nextLease(cl, now) == nil {
			t.Error("a valid hold was not passed on")
		}
		held.applyRenewal(now, now, cl.TTL, driver.ErrUnavailable)
		held.applyRenewal(now, now, cl.TTL, nil)
		time.Sleep(cl.TTL)
		if held.nextLease(cl, c.now()) != nil {
			t.Error("a hold was passed on after its term")
		}
		held.expire()
		if held.nextLease(cl, now) != nil {
			t.Error("a lost hold was passed on")
		}
		if held.lost.Reason != ReasonExpired || held.lost.Err != nil {
			t.Errorf("%v; want ReasonExpired without an error, because the last renewal succeeded", held.lost)
		}
	})
}
