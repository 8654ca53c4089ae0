package drivertest

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
)

func testRenew(s *suite) {
	s.test("MakesTheLeaseLastItsTTLFromNow", func(k *kit) {
		c := k.mutex(ttl(2 * k.unit))
		k.a.wantGranted(c)
		for range 3 { // again and again
			k.advance(k.unit)
			k.a.mustRenew(c)
		}
		k.advance(k.unit + k.unit/4)
		k.b.wantHeld(k.mutex())
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("NeverShortens", func(k *kit) {
		c := k.mutex(ttl(4 * k.unit))
		k.a.wantGranted(c)
		if err := k.a.renew(c, k.unit); err != nil {
			k.Fatal(err)
		}
		k.advance(2 * k.unit)
		k.b.wantHeld(k.mutex())
		k.a.mustRenew(c)
	})

	s.test("NeverCreates", func(k *kit) {
		c := k.mutex()
		k.a.wantLost(c) // never held
		k.b.wantHoldersWaiters(0, 0)
		k.a.wantGranted(c)
		k.a.mustRelease(c)
		k.a.wantLost(c) // released
		k.b.wantHoldersWaiters(0, 0)
		k.b.wantGranted(k.mutex())
	})

	s.test("NeverRevivesAnExpiredLease", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.advancePast(k.unit)
		k.a.wantLost(c)
		k.b.wantHoldersWaiters(0, 0)
		k.b.wantGranted(k.mutex())
		k.a.wantLost(c)
	})

	s.test("StaleTokenDoesNotRenewTheNewHolder", func(k *kit) {
		old, next := k.mutex(ttl(k.unit)), k.mutex(ttl(2*k.unit))
		k.a.wantGranted(old)
		k.advancePast(k.unit)
		k.b.wantGranted(next)
		if err := k.a.renew(old, long); !errors.Is(err, driver.ErrNoSuchLease) {
			k.Fatalf("Renew by the stale holder: %v; want ErrNoSuchLease", err)
		}
		k.advancePast(2 * k.unit)
		k.a.wantGranted(k.mutex())
	})

	s.test("DoesNotExtendOtherLeasesOfTheName", func(k *kit) {
		own, other := k.permits(1, 2, ttl(2*k.unit)), k.permits(1, 2, ttl(2*k.unit))
		k.a.wantGranted(own)
		k.b.wantGranted(other)
		k.advance(k.unit)
		k.a.mustRenew(own)
		k.advancePast(k.unit)
		k.b.wantLost(other)
	})

	s.test("AWaiterHoldsNothingToRenew", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.b.wantLost(waiter)
		k.a.wantHoldersWaiters(1, 1)
		k.b.wantPlace(waiter, 1)
	})

	s.test("WorksFromAnotherClient", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.b.mustRenew(c)
	})

	s.test("TheZeroTokenRenewsNothing", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		zero := c
		zero.Token = driver.Token{}
		k.a.wantLost(zero)
		k.a.releaseWithMinHold(c, long) // the kept lease has the zero token, which must not match it
		k.a.wantLost(zero)
	})

	s.test("AnEmptyBatchHasNoAnswers", func(k *kit) { k.a.renewAll() })

	s.test("AnswersEachLeaseOfABatchInOrder", func(k *kit) {
		own := []driver.Claim{k.mutex(), k.mutex(named(k.nthName(1))), k.mutex(named(k.nthName(2)))}
		for _, c := range own {
			k.a.wantGranted(c)
		}
		stale := k.mutex(named(k.nthName(3)))
		k.a.wantGranted(stale)
		k.a.mustRelease(stale)
		unknown := k.mutex(named(k.nthName(4)))
		others := own[1]
		others.Token = driver.NewToken()

		k.wantAnswers("nil, lost, nil, lost, lost, nil", k.a.renewAll(
			lease(own[0]), lease(stale), lease(own[1]), lease(others), lease(unknown), lease(own[2])))
		for _, c := range own {
			k.a.mustRenew(c)
		}
	})

	s.test("ANameMayStandInABatchSeveralTimes", func(k *kit) {
		first, second, third := k.permits(1, 2), k.permits(1, 2), k.permits(1, 2)
		k.a.wantGranted(first)
		k.a.wantGranted(second)
		other := k.mutex(named(k.nthName(1)))
		k.a.wantGranted(other)
		k.wantAnswers("nil, lost, nil, nil, nil", k.a.renewAll(
			lease(first), lease(third), lease(other), lease(second), lease(first)))
	})

	s.test("EveryLeaseOfALargeBatchIsRenewed", func(k *kit) {
		n := s.fewerIfFar(300)
		claims := make([]driver.Claim, n)
		leases := make([]driver.LeaseRef, n)
		for i := range claims {
			claims[i] = k.mutex(named(k.nthName(i)), ttl(2*long)) // long enough even if this loop is slow
			k.a.wantGranted(claims[i])
			leases[i] = lease(claims[i])
			leases[i].TTL = 10 * long
		}
		for i, err := range k.a.renewAll(leases...) {
			if err != nil {
				k.Fatalf("answer %d: %v", i, err)
			}
		}
		for i := range claims {
			if left := k.onlyHolder(k.b.entry(k.nthName(i)).Holders).ExpiresIn; left <= 5*long {
				k.Fatalf("lease %d lasts %v after its renewal for %v", i, left, 10*long)
			}
		}
	})
}

// wantAnswers compares the answers of a batch with a list of "nil" and "lost".
func (k *kit) wantAnswers(want string, got []error) {
	k.Helper()
	list := ""
	for i, err := range got {
		if i > 0 {
			list += ", "
		}
		switch {
		case err == nil:
			list += "nil"
		case errors.Is(err, driver.ErrNoSuchLease):
			list += "lost"
		default:
			list += err.Error()
		}
	}
	if list != want {
		k.Fatalf("answers: %s\nwant:    %s", list, want)
	}
}
