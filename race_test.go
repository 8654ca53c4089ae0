package pawl

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// A lease may be lost, because Close began or a signal came, before whoever asked for it has come back from
// the backend. Then nothing of it is kept, and the Observer hears of it after the grant.
func TestLossBeforeTheGrantLeavesNothingAndIsStillToBeSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := 0
		c, err := New(memlock.New(nil), &Options{Observer: &Observer{Lost: func(LostEvent) { said++ }}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		cl, err := c.Mutex("x").claim(context.Background(), driver.Exclusive, driver.Unlimited)
		if err != nil {
			t.Fatal(err)
		}
		a := attempts{c: c, ctx: context.Background(), claim: cl, margin: cl.marginOf(cl.TTL)}
		tn, now, err := a.run(c.now())
		if err != nil {
			t.Fatal(err)
		}
		c.renewer.add(tn, now)
		tn.lose(LostError{Reason: ReasonExpired})
		lease := c.begin(nil, tn, now)
		if lease.Err() == nil || lease.ending == nil || said != 0 {
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

// Close may begin in the middle of a Release: after the lease ended, before the backend was told. Then Close
// leaves it to the Release, which would otherwise be told that somebody else had ended the lease.
func TestReleaseThatIsOvertakenByCloseIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		c, err := New(memory.Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := c.Mutex("x").Lock(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		c.releases.enter()
		_ = lease.finish(ErrReleased)
		closed := make(chan error)
		go func() { closed <- c.Close(context.Background()) }()
		synctest.Wait()
		if err := lease.t.giveBack(context.Background(), c.now().Mono, lease); err != nil {
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

// A Release that comes when Close has begun leaves the lease to Close, which must have seen it.
func TestReleaseRacingCloseLeavesNothing(t *testing.T) {
	const leases = 32
	for round := range 30 {
		memory := memlock.NewMemory(nil)
		c, err := New(memory.Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range leases {
			lease, err := c.Mutex(strconv.Itoa(i)).Lock(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				<-begin
				_ = lease.Release(context.Background())
			})
		}
		all.Go(func() {
			<-begin
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		close(begin)
		all.Wait()
		d := memory.Driver()
		for i := range leases {
			if e, _ := d.Inspect(context.Background(), strconv.Itoa(i)); len(e.Holders) > 0 {
				t.Errorf("round %d: still held: %+v", round, e)
			}
		}
		_ = d.Close()
	}
}

// Who is refused is counted as in for a moment, and that is no lock that was not released.
func TestReleaseThatIsRefusedIsNoneThatCloseLeaves(t *testing.T) {
	memory := memlock.NewMemory(nil)
	r := &refusing{Driver: memory.Driver()}
	c, err := New(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Mutex("x").Lock(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.during = func() { c.releases.n.Add(1) } // the first half of an enter that comes too late
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	c.releases.leave()
}

// So a Release is let in for as long as Close has not seen which leases there are.
func TestReleaseIsLetInUntilCloseHasSeenItsLease(t *testing.T) {
	for round := range 1000 {
		c, err := New(memlock.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		ready := make(chan struct{})
		all.Go(func() {
			for i := 0; c.releases.enter(); i++ {
				c.releases.leave()
				if i == 100 {
					close(ready)
				}
			}
			if !c.renewer.Stopped() {
				t.Errorf("round %d: it is refused, and Close has not looked yet", round)
			}
		})
		<-ready
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if t.Failed() {
			return
		}
	}
}
