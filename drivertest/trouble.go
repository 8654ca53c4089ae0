package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testTrouble tests the errors of a driver whose backend does not answer.
func testTrouble(s *suite) {
	testLostAnswers(s)
	s.test("AFailureIsADriverErrorThatSaysWhereAndWhat", func(k *kit) {
		far, held := k.openSlow(), k.mutex()
		g := far.wantGranted(held)
		far.network.cutConnections()
		ctx, cancel := context.WithTimeout(k.ctx, k.suite.Patience/2)
		defer cancel()
		k.ownWaits.Add(int64(k.suite.Patience / 2)) // a driver may retry until then
		calls := far.callOfEachMethod(k.name, held, g.Fence)
		for _, c := range calls {
			c.begin(ctx)
		}
		for _, c := range calls {
			k.wantDriverError(ctx, c.what, c.wait())
		}
		if e := k.b.entry(k.name); len(e.Holders) != 1 || e.Holders[0].Fence != g.Fence {
			k.Errorf("%+v; want it held as before", e)
		}
	})
}

// wantDriverError requires a driver.Error, or the end of ctx, from a failed call.
func (k *kit) wantDriverError(ctx context.Context, what string, err error) {
	k.Helper()
	var failed *driver.Error
	switch {
	case err == nil, errors.Is(err, driver.ErrHeld), errors.Is(err, driver.ErrNoSuchLease), errors.Is(err, driver.ErrInvalid):
		k.Errorf("%s: %v, although there is no server; want a *driver.Error", what, err)
	case errors.As(err, &failed):
		hasName := what != "Renew" && what != "List"
		if failed.Backend == "" || failed.Op == "" || failed.Err == nil || hasName && failed.Name != k.name || !errors.Is(err, driver.ErrUnavailable) {
			k.Errorf("%s: %v: Backend %q, Op %q, Name %q, Err %v; want all of them, and the name %q", what, err, failed.Backend, failed.Op, failed.Name, failed.Err, k.name)
		}
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		k.Errorf("%s: %v (%T); want a *driver.Error with its Backend, Op and Name", what, err, err)
	}
}

// testFarAway tests a network that becomes slower, and requests that arrive just after
// the release of their tokens. It needs a real clock.
func testFarAway(s *suite) {
	if s.Clock != nil {
		return
	}
	s.testWithAdvice("how a driver learns the server's clock: with swap.Clock, the driver calls RecordOutside after each swap outside of its window, and "+
		"RecordInside after each other swap", "ANetworkThatBecomesSlowerDelaysAndNoMore", func(k *kit) {
		far, c := k.openSlow(), k.mutex()
		far.wantGranted(c)
		far.mustRelease(c)
		by := min(max(150*time.Millisecond, k.suite.Uncertainty), time.Second) // a window may be some ticks wide
		far.network.addDelay(by)
		bounded := func(do func(ctx context.Context) error) error {
			// The call needs a failed swap, the time, and a swap, or more on a busy
			// machine.
			ctx, cancel := context.WithTimeout(k.ctx, max(2*k.suite.Patience, 20*by))
			defer cancel()
			return do(ctx)
		}
		err := bounded(func(ctx context.Context) error {
			_, err := far.Acquire(ctx, c)
			return err
		})
		if err == nil {
			err = bounded(func(ctx context.Context) error {
				answers, err := far.Renew(ctx, []driver.LeaseRef{lease(c)})
				if err != nil {
					return err
				}
				return answers[0]
			})
		}
		if err == nil {
			err = bounded(func(ctx context.Context) error { return far.Release(ctx, lease(c)) })
		}
		k.ownWaits.Add(int64(time.Since(k.began))) // long times do not count as late here
		if err != nil {
			k.Fatalf("%v; want a lease granted, renewed and released", err)
		}
		k.b.wantHoldersWaiters(0, 0)
	})

	s.testWithAdvice("what a release writes if it finds nothing: a claim that was given up before, and arrives after the release, must find another version, "+
		"or be too late by the server's clock. A store whose clock is coarse, or whose swaps may take effect late, needs DelaysWrites",
		"AClaimThatComesJustAfterItsLastReleaseIsNotGranted", func(k *kit) {
			far := k.openSlow()
			for round := range 4 { // at least one round is within a second of the server's clock
				for i := range 8 {
					far.useOnce(k.nthName(8*round + i))
				}
				letArrive := far.delayRequests()
				k.inParallel(8, func(i int) {
					ctx, cancel := context.WithTimeout(k.ctx, 100*time.Millisecond)
					defer cancel()
					c := far.acquireCall(k.mutex(named(k.nthName(8*round + i))))
					c.begin(ctx)
					<-ctx.Done()
					k.wantCtxError(c.what, c.wait())
					time.Sleep(driver.MaxLead)
					k.releaseUnknown(k.b, c.claim)
				})
				k.ownWaits.Add(int64(100*time.Millisecond + driver.MaxLead))
				letArrive()
				k.awaitArrival()
				for i := range 8 {
					k.wantFree(k.nthName(8*round + i))
				}
			}
		})
}
