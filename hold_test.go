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

// A lease may be lost, because Close began or a signal came, before its call has returned
// from the backend. Then it leaves nothing behind, and the Observer gets the loss after
// the grant.
func TestLossBeforeTheGrantLeavesNothingAndIsStillToBeSaid(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		said := 0
		c, err := New(memlock.New(nil), &Options{Observer: &Observer{Lost: func(LostEvent) { said++ }}})
		noError(t, err)
		defer c.Close()
		cl, err := c.Mutex("x").claim(context.Background(), driver.Exclusive, driver.Unlimited)
		noError(t, err)
		a := attempts{c: c.core, ctx: context.Background(), claim: cl, margin: cl.marginOf(cl.TTL)}
		tn, now, err := a.run(c.now())
		noError(t, err)
		c.startRenewing(tn, now)
		tn.lose(LostError{Reason: ReasonExpired})
		lease := c.begin(nil, tn, now)
		if lease.Err() == nil || lease.pendingEnd == nil || said != 0 {
			t.Errorf("the lease says %v, and its loss is not still to be said", lease.Err())
		}
		_ = lease.Release(context.Background())
		lease.announce(0)
		synctest.Wait()
		if said != 1 {
			t.Errorf("its loss was said %d times", said)
		}
		if n := c.Gates() + c.Inboxes() + c.Leases(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
	})
}

// Close may begin in the middle of a Release: after the lease has ended, and before the
// request has reached the backend. Then Close leaves the rest to the Release, which would
// otherwise be answered that another client ended the lease.
func TestReleaseThatIsOvertakenByCloseIsNoLoss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		c, err := New(memory.Driver(), nil)
		noError(t, err)
		lease, err := c.Mutex("x").Lock(context.Background())
		noError(t, err)
		c.releases.enter()
		_ = lease.finish(ErrReleased)
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		if err := lease.h.giveBack(context.Background(), c.now().Mono, lease); err != nil {
			t.Errorf("the release says %v", err)
		}
		c.releases.leave()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		d := memory.Driver()
		defer d.Close()
		if e, _ := d.Inspect(context.Background(), "x"); len(e.Holders) > 0 {
			t.Errorf("still held: %+v", e)
		}
	})
}

// A hold is passed on only while it can be trusted; and its loss has the last known
// reason.
func TestAHoldThatIsOverIsNotPassedOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, err := New(memlock.New(nil), nil)
		noError(t, err)
		defer c.Close()
		cl, err := c.Mutex("x").claim(context.Background(), driver.Exclusive, driver.Unlimited)
		noError(t, err)
		now := c.now()
		held := newHold(c.core, cl, now, trust.NewTerm(now, cl.TTL, cl.marginOf(cl.TTL)), 1, 10)
		if held.pass(cl, now) == nil {
			t.Error("it is well, and not passed on")
		}
		held.applyRenewal(now, now, cl.TTL, driver.ErrUnavailable)
		held.applyRenewal(now, now, cl.TTL, nil)
		time.Sleep(cl.TTL)
		if held.pass(cl, c.now()) != nil {
			t.Error("its term is over, and it was passed on")
		}
		held.expire()
		if held.pass(cl, now) != nil {
			t.Error("it is lost, and was passed on")
		}
		if held.lost.Reason != ReasonExpired || held.lost.Err != nil {
			t.Errorf("%v; the renewal after the failure was answered", held.lost)
		}
	})
}
