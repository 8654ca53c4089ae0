package drivertest

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
)

func testRenew(s *suite) {
	s.test("MakesTheLeaseLastItsTTLFromNow", func(k *kit) {
		c := k.mutex(ttl(2 * k.u))
		k.a.gets(c)
		for range 3 { // and so for ever
			k.pass(k.u)
			k.a.keeps(c)
		}
		k.pass(k.u + k.u/4)
		k.b.refused(k.mutex())
		k.past(k.u)
		k.b.gets(k.mutex())
	})

	s.test("NeverShortens", func(k *kit) {
		c := k.mutex(ttl(4 * k.u))
		k.a.gets(c)
		if err := k.a.renew(c, k.u); err != nil {
			k.Fatal(err)
		}
		k.pass(2 * k.u)
		k.b.refused(k.mutex())
		k.a.keeps(c)
	})

	s.test("NeverCreates", func(k *kit) {
		c := k.mutex()
		k.a.lost(c) // never held
		k.b.seesHoldersWaiters(0, 0)
		k.a.gets(c)
		k.a.releases(c)
		k.a.lost(c) // released
		k.b.seesHoldersWaiters(0, 0)
		k.b.gets(k.mutex())
	})

	s.test("NeverRevivesAnExpiredLease", func(k *kit) {
		c := k.mutex(ttl(k.u))
		k.a.gets(c)
		k.past(k.u)
		k.a.lost(c)
		k.b.seesHoldersWaiters(0, 0)
		k.b.gets(k.mutex())
		k.a.lost(c)
	})

	s.test("StaleTokenDoesNotRenewTheNewHolder", func(k *kit) {
		old, next := k.mutex(ttl(k.u)), k.mutex(ttl(2*k.u))
		k.a.gets(old)
		k.past(k.u)
		k.b.gets(next)
		if err := k.a.renew(old, long); !errors.Is(err, driver.ErrNoSuchLease) {
			k.Fatalf("Renew by the stale holder: %v; want ErrNoSuchLease", err)
		}
		k.past(2 * k.u)
		k.a.gets(k.mutex())
	})

	s.test("LeavesThoseBesideItAsTheyAre", func(k *kit) {
		mine, other := k.permits(1, 2, ttl(2*k.u)), k.permits(1, 2, ttl(2*k.u))
		k.a.gets(mine)
		k.b.gets(other)
		k.pass(k.u)
		k.a.keeps(mine)
		k.past(k.u)
		k.b.lost(other)
	})

	s.test("AWaiterHoldsNothingToRenew", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		k.b.lost(waiter)
		k.a.seesHoldersWaiters(1, 1)
		k.b.waits(waiter, 1)
	})

	s.test("WorksFromAnotherClient", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.b.keeps(c)
	})

	s.test("TheZeroTokenRenewsNothing", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		nobody := c
		nobody.Token = driver.Token{}
		k.a.lost(nobody)
		k.a.releasesEarly(c, long) // a lease that is kept has no token, and must not be found by the zero token
		k.a.lost(nobody)
	})

	s.test("AnEmptyBatchHasNoAnswers", func(k *kit) { k.a.renewAll() })

	s.test("AnswersEachLeaseOfABatchInOrder", func(k *kit) {
		mine := []driver.Claim{k.mutex(), k.mutex(on(k.nth(1))), k.mutex(on(k.nth(2)))}
		for _, c := range mine {
			k.a.gets(c)
		}
		stale := k.mutex(on(k.nth(3)))
		k.a.gets(stale)
		k.a.releases(stale)
		unknown := k.mutex(on(k.nth(4)))
		others := mine[1]
		others.Token = driver.NewToken()

		k.answers("nil, lost, nil, lost, lost, nil", k.a.renewAll(
			lease(mine[0]), lease(stale), lease(mine[1]), lease(others), lease(unknown), lease(mine[2])))
		for _, c := range mine {
			k.a.keeps(c)
		}
	})

	s.test("ANameMayStandInABatchSeveralTimes", func(k *kit) {
		first, second, third := k.permits(1, 2), k.permits(1, 2), k.permits(1, 2)
		k.a.gets(first)
		k.a.gets(second)
		other := k.mutex(on(k.nth(1)))
		k.a.gets(other)
		k.answers("nil, lost, nil, nil, nil", k.a.renewAll(
			lease(first), lease(third), lease(other), lease(second), lease(first)))
	})

	s.test("EveryLeaseOfALargeBatchIsRenewed", func(k *kit) {
		n := s.fewer(300)
		claims := make([]driver.Claim, n)
		leases := make([]driver.LeaseRef, n)
		for i := range claims {
			claims[i] = k.mutex(on(k.nth(i)), ttl(2*long)) // long enough even where this loop takes a while
			k.a.gets(claims[i])
			leases[i] = lease(claims[i])
			leases[i].TTL = 10 * long
		}
		for i, err := range k.a.renewAll(leases...) {
			if err != nil {
				k.Fatalf("answer %d: %v", i, err)
			}
		}
		for i := range claims {
			if left := k.one(k.b.entry(k.nth(i)).Holders).ExpiresIn; left <= 5*long {
				k.Fatalf("lease %d lasts %v after its renewal for %v", i, left, 10*long)
			}
		}
	})
}

// answers compares the answers of a batch with a list of "nil" and "lost".
func (k *kit) answers(want string, got []error) {
	k.Helper()
	said := ""
	for i, err := range got {
		if i > 0 {
			said += ", "
		}
		switch {
		case err == nil:
			said += "nil"
		case errors.Is(err, driver.ErrNoSuchLease):
			said += "lost"
		default:
			said += err.Error()
		}
	}
	if said != want {
		k.Fatalf("answers: %s\nwant:    %s", said, want)
	}
}
