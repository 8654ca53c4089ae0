package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// ticket sets the Ticket of a claim.
func ticket(at time.Time) option { return func(c *driver.Claim) { c.Ticket = uint64(at.UnixMicro()) } }

// testTicket is for drivers that can be nodes of a quorum: a claim is queued as if it had
// arrived at its ticket, at most MaxLead before its arrival.
func testTicket(s *suite) {
	s.test("AWaiterIsQueuedByItsTicket", func(k *kit) {
		holder := k.mutex()
		k.a.wantGranted(holder)
		var first, second, late driver.Claim
		k.runInTime(func() time.Time {
			var between, arrived time.Time
			first, second, between, arrived = k.queuePair()
			late = k.mutex(queue(long), ticket(between))
			k.b.wantHeld(late)
			return arrived
		}, func() {
			for _, c := range []driver.Claim{first, second, late} {
				k.a.mustRelease(c)
			}
		})
		k.b.wantPlace(late, 2)
		k.a.wantHoldersWaiters(1, 3)
		k.a.wantPlace(first, 1)
		k.a.wantPlace(late, 2)
		k.b.wantPlace(second, 3)
		k.a.wantPlace(k.mutex(queue(long)), 4)
		for _, next := range []driver.Claim{first, late, second} {
			k.a.mustRelease(holder)
			k.b.wantGranted(next)
			holder = next
		}
	})

	s.test("ARepeatKeepsItsPlaceWhateverItsTicket", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first, second, between, _ := k.queuePair()
		for _, at := range []time.Time{between, between.Add(-time.Second), between.Add(time.Hour)} {
			ticket(at)(&first)
			ticket(at)(&second)
			k.b.wantPlace(first, 1)
			k.a.wantPlace(second, 2)
			k.b.wantPlace(first, 1)
		}
	})

	s.test("ItCountsForMaxLeadAndNoMore", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first := k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.advancePast(driver.MaxLead + clockStep)
		var second, old driver.Claim
		k.runInTime(func() time.Time {
			second, old = k.mutex(queue(long)), k.mutex(queue(long))
			old.Ticket = 1
			arrived := time.Now()
			k.b.wantPlace(second, 2)
			k.advance(time.Millisecond)
			k.a.wantHeld(old)
			return arrived
		}, func() {
			k.a.mustRelease(old)
			k.b.mustRelease(second)
		})
		k.a.wantPlace(old, 2)
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 3)
	})

	s.test("AFutureTicketCountsAsNow", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first, second, between, _ := k.queuePair()
		early := k.mutex(queue(long), ticket(between.Add(time.Hour)))
		k.b.wantPlace(early, 3)
		k.advance(time.Millisecond)
		k.a.wantPlace(k.mutex(queue(long)), 4)
		k.b.wantPlace(early, 3)
		k.a.wantPlace(second, 2)
		k.a.wantPlace(first, 1)
	})

	s.test("ItDoesNotHelpATry", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		large := k.permits(3, 3, queue(long))
		k.b.wantPlace(large, 1)
		since := k.a.wantHoldersWaiters(1, 1).Waiters[0].Since
		k.a.wantPlace(k.permits(1, 3, ticket(since.Add(-driver.MaxLead/2))), 0) // it would fit
		k.a.wantHoldersWaiters(1, 1)
	})
}

// runInTime runs f, whose last request has a ticket, until that request arrives within
// MaxLead after the instant that f returns. A busy machine may need several tries, and
// undo reverses the late ones.
func (k *kit) runInTime(f func() time.Time, undo func()) {
	k.Helper()
	for k.suite.Clock == nil {
		if time.Since(f()) <= driver.MaxLead {
			return
		}
		undo()
	}
	f()
}

// queuePair queues two claims, one shortly after the other. It returns an instant between
// their arrivals, and one before the second.
func (k *kit) queuePair() (first, second driver.Claim, between, arrived time.Time) {
	k.Helper()
	if k.suite.Uncertainty >= driver.MaxLead {
		k.Skipf("a ticket counts for %v, and the backend's time is known to within %v", driver.MaxLead, k.suite.Uncertainty)
	}
	for range 50 {
		first, second = k.mutex(queue(long)), k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.advance(2 * time.Millisecond)
		arrived = time.Now()
		k.b.wantPlace(second, 2)
		waiters := k.a.wantHoldersWaiters(1, 2).Waiters
		k.advance(time.Millisecond)
		if half := waiters[1].Since.Sub(waiters[0].Since) / 2; half >= time.Microsecond {
			return first, second, waiters[0].Since.Add(half), arrived
		}
		// The clients' estimates of the time differ, and the second one's was behind.
		k.a.mustRelease(first)
		k.b.mustRelease(second)
	}
	k.Fatal("two claims, one after the other, always had the same arrival time")
	return first, second, between, arrived
}
