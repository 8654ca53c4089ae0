package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Package locktable has the same tests for the algorithm, with a clock that stands still.
func TestATicketPutsAWaiterWhereItWouldStandIfItHadComeThen(t *testing.T) {
	t.Parallel()
	d := start(t, "redis://"+redistest.Start(t).Addr)
	joins := func(c driver.Claim, ticket time.Time, want int) driver.Claim {
		t.Helper()
		if !ticket.IsZero() {
			c.Ticket = uint64(ticket.UnixMicro())
		}
		_, err := d.Acquire(ctx, c)
		if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Position != want {
			t.Errorf("%v; want place %d", err, want)
		}
		return c
	}
	long, now := time.Hour, time.Time{}
	waiter := func() driver.Claim {
		c := queued("job")
		c.WaitTTL = long
		return c
	}
	gets(t, d, mutex("job"))
	joins(waiter(), time.Now().Add(-time.Hour), 1) // by no more than MaxLead
	time.Sleep(300 * time.Millisecond)
	before := time.Now().Add(-10 * time.Millisecond)
	second := joins(waiter(), now, 2)
	third := joins(waiter(), now, 3)
	early := joins(waiter(), before, 2)
	joins(waiter(), before, 3)                     // the same ticket, and later
	joins(waiter(), time.Now().Add(time.Hour), 6)  // that is now
	joins(waiter(), time.Now().Add(-time.Hour), 2) // MaxLead before now: the first came before that
	joins(early, now, 3)                           // a repeat keeps its place
	joins(second, before.Add(-time.Second), 5)
	joins(third, now, 6)

	try := mutex("job")
	try.Ticket = 1
	if _, err := d.Acquire(ctx, try); !errors.Is(err, driver.ErrHeld) {
		t.Error("a try passed those who wait")
	}
}

func TestATicketOfTheHeadThatFitsIsAGrant(t *testing.T) {
	t.Parallel()
	d := start(t, "redis://"+redistest.Start(t).Addr)
	permits := func(n int) driver.Claim {
		c := queued("pool")
		c.Weight, c.Limit, c.WaitTTL = n, 2, time.Hour
		return c
	}
	gets(t, d, permits(1))
	before := time.Now().Add(-10 * time.Millisecond)
	if _, err := d.Acquire(ctx, permits(2)); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	c := permits(1)
	if _, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
		t.Error("it passed the one before it")
	}
	c = permits(1)
	c.Ticket = uint64(before.UnixMicro())
	gets(t, d, c)
}
