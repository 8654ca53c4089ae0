package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/skip"
)

// The ticket expires after MaxLead, and a busy machine may be too slow, so the test tries
// again.
func TestAClaimWithATicketOfTheHeadIsGrantedIfItFits(t *testing.T) {
	t.Parallel()
	d := openDriver(t, "redis://"+redistest.Start(t).Addr)
	name := ""
	permits := func(n int) driver.Claim {
		c := queued(name)
		c.Weight, c.Limit, c.QueueTTL = n, 2, time.Hour
		return c
	}
	for try := range 20 {
		name = fmt.Sprint("pool ", try)
		gets(t, d, permits(1))
		ticket := time.Now().Add(-10 * time.Millisecond)
		if _, err := d.Acquire(ctx, permits(2)); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
		if _, err := d.Acquire(ctx, permits(1)); !errors.Is(err, driver.ErrHeld) {
			t.Error("the claim passed the head")
		}
		c := permits(1)
		c.Ticket = uint64(ticket.UnixMicro())
		_, err := d.Acquire(ctx, c)
		if time.Since(ticket) > driver.MaxLead {
			continue // the ticket may have expired
		}
		if err != nil {
			t.Errorf("%v; want a grant", err)
		}
		return
	}
	skip.Unproven(t, "the ticket expired in each of 20 tries")
}

// drivertest checks this to the microsecond, with a clock that stands still. Here the
// test and Redis read the same running clock.
func TestMinFenceIsIgnoredFarAheadOfTheClock(t *testing.T) {
	d := openDriver(t, "redis://"+redistest.Start(t).Addr)
	micros := func(ahead time.Duration) uint64 { return uint64(time.Now().Add(ahead).UnixMicro()) }
	for what, kind := range map[string]func(string) driver.Claim{"the quick case": mutex, "the general case": reader} {
		gets(t, d, kind(what)) // the general case needs an entry
		c := kind(what)
		if what == "the quick case" {
			c.Force = true
		}
		c.MinFence = micros(driver.MaxLead * 4 / 5)
		if g := gets(t, d, c); g.Fence != c.MinFence {
			t.Errorf("%s: MinFence %d, fence %d", what, c.MinFence, g.Fence)
		}
		for _, minFence := range []uint64{micros(time.Hour), 1<<64 - 1} {
			name := what + "/far"
			free := kind(name)
			gets(t, d, free)
			releases(t, d, free)
			c := kind(name)
			c.MinFence = minFence
			low := micros(driver.MaxLead)
			g := gets(t, d, c)
			if high := micros(driver.MaxLead); g.Fence < low || g.Fence > high {
				t.Errorf("%s: MinFence %d, fence %d, want %d to %d", what, minFence, g.Fence, low, high)
			}
			releases(t, d, c)
		}
	}
}

func TestMinFenceIsIgnoredWhenAReleaseGrants(t *testing.T) {
	d := openDriver(t, "redis://"+redistest.Start(t).Addr)
	holder, waiter := mutex("job"), queued("job")
	gets(t, d, holder)
	waiter.MinFence = uint64(time.Now().Add(driver.MaxLead).UnixMicro())
	_, _ = d.Acquire(ctx, waiter)
	releases(t, d, holder)
	if g := gets(t, d, waiter); g.Fence > uint64(time.Now().UnixMicro()) {
		t.Errorf("fence %d, above the clock", g.Fence)
	}
}
