package pawl

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// If Close has begun, Release leaves the lease to Close. So Close must know the lease.
func TestReleaseRacingCloseLeavesNothing(t *testing.T) {
	const leases = 32
	for round := range 30 {
		memory := memlock.NewMemory(nil)
		c := must(New(memory.Driver(), nil))(t)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range leases {
			lease := must(c.Mutex(strconv.Itoa(i)).Lock(context.Background()))(t)
			all.Go(func() {
				<-begin
				_ = lease.Release(context.Background())
			})
		}
		all.Go(func() {
			<-begin
			noError(t, c.Close())
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

// A Release that Close refuses is counted as under way for a moment. Close must not
// report it as a lease that was not released.
func TestCloseDoesNotCountARefusedRelease(t *testing.T) {
	memory := memlock.NewMemory(nil)
	r := &releaseHook{Driver: engine.Full(memory.Driver())}
	c := must(New(r, nil))(t)
	must(c.Mutex("x").Lock(context.Background()))(t)
	r.during = func() { c.releases.n.Add(1) } // the first half of an enter that comes too late
	noError(t, c.Close())
	c.releases.leave()
}

// A Release is accepted until Close has the list of the leases.
func TestReleaseIsAcceptedUntilCloseHasSeenItsLease(t *testing.T) {
	for round := range 1000 {
		c := must(New(memlock.New(nil), nil))(t)
		var all sync.WaitGroup
		ready := make(chan struct{})
		all.Go(func() {
			for i := 0; c.releases.enter(); i++ {
				c.releases.leave()
				if i == 100 {
					close(ready)
				}
			}
			if c.renewals.Add(&renewal{}, nil, time.Minute, time.Minute, time.Now()) {
				t.Errorf("round %d: Release is refused before Close has the list", round)
			}
		})
		<-ready
		noError(t, c.Close())
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// releaseHook is a driver that calls a function of the test during each release.
type releaseHook struct {
	driver.Driver
	during func()
}

func (r *releaseHook) Release(ctx context.Context, l driver.LeaseRef) error {
	r.during()
	return r.Driver.Release(ctx, l)
}
