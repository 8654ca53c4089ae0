package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// As the test of package locktable, where the clock stands still. Here a ticket counts
// only for MaxLead, and the machine may be busy.
func TestATicketOfTheHeadThatFitsIsAGrant(t *testing.T) {
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
		before := time.Now().Add(-10 * time.Millisecond)
		if _, err := d.Acquire(ctx, permits(2)); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
		if _, err := d.Acquire(ctx, permits(1)); !errors.Is(err, driver.ErrHeld) {
			t.Error("it passed the one before it")
		}
		c := permits(1)
		c.Ticket = uint64(before.UnixMicro())
		_, err := d.Acquire(ctx, c)
		if time.Since(before) > driver.MaxLead {
			continue // it may have been too late for that
		}
		if err != nil {
			t.Errorf("%v; want it granted", err)
		}
		return
	}
	t.Fatal("the machine is too busy")
}

// drivertest checks this to the microsecond, with a clock that stands still. Redis has
// its own clock, which is also ours here.
func TestAWishedFenceIsHeededNearTheClockOnly(t *testing.T) {
	d := openDriver(t, "redis://"+redistest.Start(t).Addr)
	micros := func(ahead time.Duration) uint64 { return uint64(time.Now().Add(ahead).UnixMicro()) }
	for what, kind := range map[string]func(string) driver.Claim{"the quick case": mutex, "the whole": reader} {
		gets(t, d, kind(what)) // most of the script is for names that have an entry
		c := kind(what)
		if what == "the quick case" {
			c.Force = true
		}
		c.MinFence = micros(driver.MaxLead * 4 / 5)
		if g := gets(t, d, c); g.Fence != c.MinFence {
			t.Errorf("%s: wished for %d, got %d", what, c.MinFence, g.Fence)
		}
		for _, wish := range []uint64{micros(time.Hour), 1<<64 - 1} {
			name := what + "/far"
			free := kind(name)
			gets(t, d, free)
			releases(t, d, free)
			c := kind(name)
			c.MinFence = wish
			low := micros(driver.MaxLead)
			g := gets(t, d, c)
			if high := micros(driver.MaxLead); g.Fence < low || g.Fence > high {
				t.Errorf("%s: wished for %d, got %d, want %d to %d", what, wish, g.Fence, low, high)
			}
			releases(t, d, c)
		}
	}
}

func TestAClaimThatWasGrantedFromTheQueueHasNoWish(t *testing.T) {
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
