package drivertest

import (
	"errors"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

func testClose(s *suite) {
	s.timeless = true
	s.test("EveryLaterCallReturnsErrClosed", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.mustClose(k.a)
		wantClosed := func(what string, err error) {
			k.Helper()
			if !errors.Is(err, driver.ErrClosed) {
				k.Errorf("%s: %v; want ErrClosed", what, err)
			}
		}
		_, err := k.a.Acquire(k.ctx, k.mutex(named(k.name+"/free")))
		wantClosed("Acquire of a free name", err)
		_, err = k.a.Acquire(k.ctx, k.mutex(queue(long)))
		wantClosed("Acquire of a held name", err)
		_, err = k.a.Acquire(k.ctx, c)
		wantClosed("Acquire repeated", err)
		_, err = k.a.Renew(k.ctx, []driver.LeaseRef{lease(c)})
		wantClosed("Renew", err)
		wantClosed("Release", k.a.Release(k.ctx, lease(c)))
		_, err = k.a.Inspect(k.ctx, k.name)
		wantClosed("Inspect", err)
		if s.canBreak {
			wantClosed("Break", k.a.breakLease(g.Fence, 0, driver.Owner{}))
		}
		if s.canList {
			wantClosed("List", k.listErr(k.ctx, k.a))
		}
		k.a.Properties()             // must not panic
		k.b.wantHoldersWaiters(1, 0) // and no call changed anything
		if e := k.b.entry(k.name + "/free"); len(e.Holders) != 0 {
			k.Errorf("%+v; want no holder", e)
		}
	})

	s.test("ASecondTimeDoesNothing", func(k *kit) {
		k.mustClose(k.a)
		k.mustClose(k.a)
		k.b.wantGranted(k.mutex())
	})

	s.test("DoesNotReleaseLeasesNorPlaces", func(k *kit) {
		c, waiter := k.mutex(), k.mutex(queue(long))
		g := k.a.wantGranted(c)
		k.a.wantPlace(waiter, 1)
		k.mustClose(k.a)
		k.b.wantFences(g.Fence)
		k.b.wantHoldersWaiters(1, 1)
		k.b.wantPlace(waiter, 1)
		k.b.mustRenew(c)
		k.b.mustRelease(c)
		k.open().wantGranted(waiter)
	})

	s.test("LeavesOtherClientsAlone", func(k *kit) {
		c := k.mutex()
		k.b.wantGranted(c)
		k.mustClose(k.a)
		k.b.mustRenew(c)
		k.open().wantHeld(k.mutex())
	})

	s.test("AWaitersTurnStillComesToOthers", func(k *kit) {
		// A signal cannot reach a promoted waiter whose client is closed. That must not
		// stop the client that passes the name on.
		holder, gone := k.mutex(), k.mutex(queue(long))
		k.b.wantGranted(holder)
		k.a.wantPlace(gone, 1)
		k.mustClose(k.a)
		k.b.mustRelease(holder)
		k.b.wantHoldersWaiters(1, 0)
		k.b.mustRelease(gone)
		k.b.wantGranted(k.mutex())
	})

	s.test("EachAcquireThatRacesWithItIsAnswered", func(k *kit) {
		d := k.open()
		claims := make([]driver.Claim, 50)
		answers := make([]error, len(claims))
		var all sync.WaitGroup
		for i := range claims {
			claims[i] = k.mutex(named(k.nthName(i)))
			all.Go(func() { _, answers[i] = d.Acquire(k.ctx, claims[i]) })
		}
		k.mustClose(d)
		all.Wait()
		for i, c := range claims {
			// An attempt under way has an unknown outcome, as after a lost connection.
			if err := answers[i]; err != nil && !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrUnavailable) {
				k.Fatalf("Acquire: %v; want it granted, or ErrClosed", err)
			}
			err := k.b.Release(k.ctx, lease(c))
			if answers[i] == nil && err != nil {
				k.Fatalf("Release of a granted claim: %v", err)
			}
			if e := k.b.entry(c.Name); len(e.Holders) != 0 {
				k.Fatalf("%+v; want no holder", e)
			}
		}
	})
}
