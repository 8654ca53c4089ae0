package drivertest_test

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

var ticketFaults = []fault{{
	name: "tickets are not heeded", mustFail: []string{"Ticket/AWaiterIsQueuedByItsTicket", "Ticket/ItCountsForMaxLeadAndNoMore"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) { c.Ticket = 0 }),
}, {
	name: "an old ticket is the first of all", mustFail: []string{"Ticket/ItCountsForMaxLeadAndNoMore"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		d.edit(c.Name, func(e *locktable.Entry, now locktable.Instant) {
			place := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == c.Token })
			if place > 0 && c.Ticket > 0 && c.Ticket < uint64(now)/2 {
				e.Queue[0], e.Queue[place] = e.Queue[place], e.Queue[0]
			}
		})
		return g, err
	}),
}, {
	name: "a repeat with another ticket moves", mustFail: []string{"Ticket/ARepeatKeepsItsPlaceWhateverItsTicket"},
	driver: changeQueue(func(e *locktable.Entry, c driver.Claim, place int) {
		if place >= 0 && c.Ticket != 0 {
			e.Queue = slices.Delete(e.Queue, place, place+1)
		}
	}),
}, {
	name: "a ticket from the future is the first of all", mustFail: []string{"Ticket/AFutureTicketCountsAsNow"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if c.Ticket > uint64(locktable.At(d.table.server.now())) {
			c.Ticket = 1
		}
	}),
}, {
	name: "a try with a ticket passes those who wait", mustFail: []string{"Ticket/ItDoesNotHelpATry"},
	driver: hideQueueFrom(func(_ *faulty, c driver.Claim) bool { return !c.Queue && !c.Force && c.Ticket != 0 }),
}}
