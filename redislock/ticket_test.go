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
