package drivertest

import (
	"errors"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

func testClose(s *suite) {
	s.timeless = true
	s.test("ThenEverythingIsAnsweredWithErrClosed", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.closes(k.a)
		wants := func(what string, err error) {
			k.Helper()
			if !errors.Is(err, driver.ErrClosed) {
				k.Errorf("%s: %v; want ErrClosed", what, err)
			}
		}
		_, err := k.a.Acquire(k.ctx, k.mutex(on(k.name+"/free")))
		wants("Acquire of a free name", err)
		_, err = k.a.Acquire(k.ctx, k.mutex(queue(long)))
		wants("Acquire of a held name", err)
		_, err = k.a.Acquire(k.ctx, c)
		wants("Acquire repeated", err)
		_, err = k.a.Renew(k.ctx, []driver.LeaseRef{lease(c)})
		wants("Renew", err)
		wants("Release", k.a.Release(k.ctx, lease(c)))
		_, err = k.a.Inspect(k.ctx, k.name)
		wants("Inspect", err)
		if s.breaks {
			wants("Break", k.a.breaks(g.Fence, 0, driver.Owner{}))
		}
		if s.lists {
			wants("List", k.listErr(k.ctx, k.a))
		}
		k.a.Properties()             // must not panic
		k.b.seesHoldersWaiters(1, 0) // and nothing was changed
		if e := k.b.entry(k.name + "/free"); len(e.Holders) != 0 {
			k.Errorf("%+v; want nobody", e)
		}
	})

	s.test("ASecondTimeDoesNothing", func(k *kit) {
		k.closes(k.a)
		k.closes(k.a)
		k.b.gets(k.mutex())
	})

	s.test("DoesNotReleaseLeasesNorPlaces", func(k *kit) {
		c, waiter := k.mutex(), k.mutex(queue(long))
		g := k.a.gets(c)
		k.a.waits(waiter, 1)
		k.closes(k.a)
		k.b.heldBy(g.Fence)
		k.b.seesHoldersWaiters(1, 1)
		k.b.waits(waiter, 1)
		k.b.keeps(c)
		k.b.releases(c)
		k.open().gets(waiter)
	})

	s.test("LeavesOtherClientsAlone", func(k *kit) {
		c := k.mutex()
		k.b.gets(c)
		k.closes(k.a)
		k.b.keeps(c)
		k.open().refused(k.mutex())
	})

	s.test("AWaitersTurnStillComesToOthers", func(k *kit) {
		// A signal cannot reach a promoted waiter whose client is closed, and that must
		// not stop the client that passes the name on.
		holder, gone := k.mutex(), k.mutex(queue(long))
		k.b.gets(holder)
		k.a.waits(gone, 1)
		k.closes(k.a)
		k.b.releases(holder)
		k.b.seesHoldersWaiters(1, 0)
		k.b.releases(gone)
		k.b.gets(k.mutex())
	})

	s.test("RacingAcquiresIsAnAnswerToEach", func(k *kit) {
		d := k.open()
		claims := make([]driver.Claim, 50)
		answers := make([]error, len(claims))
		var all sync.WaitGroup
		for i := range claims {
			claims[i] = k.mutex(on(k.nth(i)))
			all.Go(func() { _, answers[i] = d.Acquire(k.ctx, claims[i]) })
		}
		k.closes(d)
		all.Wait()
		for i, c := range claims {
			// An attempt that was under way has an unknown outcome, as when a connection
			// breaks.
			if err := answers[i]; err != nil && !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrUnavailable) {
				k.Fatalf("Acquire: %v; want it granted, or ErrClosed", err)
			}
			err := k.b.Release(k.ctx, lease(c))
			if answers[i] == nil && err != nil {
				k.Fatalf("Release of what was granted: %v", err)
			}
			if e := k.b.entry(c.Name); len(e.Holders) != 0 {
				k.Fatalf("%+v; want nobody", e)
			}
		}
	})
}
