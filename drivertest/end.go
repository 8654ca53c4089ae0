package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testEnd tests that a request changes nothing if it arrives after its caller gave up, or
// after another request. Without a network, it tests that calls leave no request behind.
func testEnd(s *suite) {
	if s.NoNetwork {
		testNothingOutlivesItsCall(s)
		return
	}
	testLateClaims(s)
	testLateRepeats(s)
	testLateReleases(s)
	testGivenUp(s)
	testFarAway(s)
}

// testLateClaims tests late claims in every mode, alone and with other claims.
func testLateClaims(s *suite) {
	for name, mode := range map[string][]option{
		"ATryThatComesAfterItsEndChangesNothing":          nil,
		"AClaimToQueueThatComesAfterItsEndChangesNothing": {queue(long)},
		"AForceThatComesAfterItsEndChangesNothing":        {force},
	} {
		s.test(name, func(k *kit) {
			slow := k.openSlow()
			for _, w := range k.lateCtxEnds() {
				free, held := k.mutex(append(mode, named(k.name+w.name+"free"))...), k.mutex(append(mode, named(k.name+w.name+"held"))...)
				slow.useOnce(free.Name)
				g := k.a.wantGranted(k.mutex(named(held.Name)))
				slow.wantHeld(k.mutex(named(held.Name)))
				letArrive := slow.delayRequests()
				k.wantPromptReturn(w, slow.acquireCall(free), slow.acquireCall(held))
				k.advancePast(2 * k.shortTimeout())
				letArrive()
				k.awaitArrival()
				k.wantFree(free.Name)
				k.wantOneHolder(held.Name, g.Fence)
			}
		})
	}

	s.test("RequestsBeforeTheirEndAreAnswered", func(k *kit) {
		slow := k.openSlow()
		free, queued, forced := k.mutex(), k.mutex(named(k.nthName(1)), queue(long)), k.mutex(named(k.nthName(2)), force)
		k.a.wantGranted(k.mutex(named(queued.Name)))
		k.a.wantGranted(k.mutex(named(forced.Name)))
		letArrive := slow.delayRequests()
		calls := []*call{slow.acquireCall(free), slow.acquireCall(queued), slow.acquireCall(forced)}
		for _, c := range calls {
			c.begin(k.ctx)
		}
		k.pause(k.shortTimeout())
		for _, c := range calls {
			if c.hasReturned() {
				k.Fatalf("the call returned %v, although the requests were delayed", c.err)
			}
		}
		letArrive()
		for i, want := range []error{nil, driver.ErrHeld, nil} {
			if err := calls[i].wait(); !errors.Is(err, want) {
				k.Errorf("Acquire: %v, want %v", err, want)
			}
		}
	})

	s.test("AmongManyRequestsOnlyTheLateOnesChangeNothing", func(k *kit) {
		slow := k.openSlow()
		modes := []option{func(*driver.Claim) {}, queue(long), force}
		type one struct {
			*call
			inTime, held bool
			mode         int
			fence        uint64 // the fence of the claim that held the name before
		}
		var all []*one
		for i := range 12 * len(modes) {
			o := &one{mode: i % 3, held: i/3%2 == 0, inTime: i/6%2 == 0}
			c := k.mutex(named(k.nthName(i)), modes[o.mode])
			if o.held {
				o.fence = k.a.wantGranted(k.mutex(named(c.Name))).Fence
			}
			o.call = slow.acquireCall(c)
			all = append(all, o)
		}
		letArrive := slow.delayRequests()
		shortCtx, cancel := context.WithTimeout(k.ctx, k.shortTimeout())
		defer cancel()
		for _, o := range all {
			if o.inTime {
				o.begin(k.ctx)
			} else {
				o.begin(shortCtx)
			}
		}
		k.awaitEnd(shortCtx)
		k.advancePast(2 * k.shortTimeout())
		letArrive()
		for _, o := range all {
			err := o.wait()
			switch granted := !o.held || o.mode == 2; {
			case !o.inTime:
				k.wantCtxError("Acquire", err)
			case granted && err != nil:
				k.Errorf("Acquire in time: %v; want it granted", err)
			case !granted && !errors.Is(err, driver.ErrHeld):
				k.Errorf("Acquire in time: %v; want ErrHeld", err)
			}
		}
		k.awaitArrival()
		for _, o := range all {
			switch {
			case o.inTime:
			case o.held:
				k.wantOneHolder(o.claim.Name, o.fence)
			default:
				k.wantFree(o.claim.Name)
			}
		}
	})

	s.testExact("WithoutADeadlineTheEndIsMaxRequestAway", func(k *kit) {
		slow, c := k.openSlow(), k.mutex()
		ctx, cancel := context.WithCancel(context.WithoutCancel(k.ctx))
		defer cancel()
		letArrive := slow.delayRequests()
		late := slow.acquireCall(c)
		late.begin(ctx)
		k.pause(k.shortTimeout())
		cancel()
		k.wantCtxError(late.what, late.wait())
		k.advancePast(driver.MaxRequest + k.shortTimeout())
		letArrive()
		k.awaitArrival()
		k.b.wantHoldersWaiters(0, 0)
	})
}

// testLateRepeats tests that late repeats of known claims change nothing.
func testLateRepeats(s *suite) {
	s.test("ALateRepeatDoesNotExtendALease", func(k *kit) {
		slow, c := k.openSlow(), k.mutex()
		slow.wantGranted(c)
		k.repeatLate(slow, c)
		if left := k.onlyHolder(k.b.wantHoldersWaiters(1, 0).Holders).ExpiresIn; left > long-k.shortTimeout() {
			k.Errorf("the lease lasts another %v, as if it had just been granted", left)
		}
	})

	s.test("ALateRepeatDoesNotKeepAPlace", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(queue(long))
		k.a.wantGranted(k.mutex())
		slow.wantPlace(c, 1)
		k.repeatLate(slow, c)
		if left := k.b.wantHoldersWaiters(1, 1).Waiters[0].ExpiresIn; left > long-k.shortTimeout() {
			k.Errorf("the place lasts another %v, as if it had just been taken", left)
		}
	})

	s.test("ALateRepeatDoesNotExtendAPromotedGrant", func(k *kit) {
		slow, holder, c := k.openSlow(), k.mutex(), k.mutex(queue(long/2))
		k.a.wantGranted(holder)
		slow.wantPlace(c, 1)
		k.repeatLate(slow, c, holder)
		if left := k.onlyHolder(k.b.wantHoldersWaiters(1, 0).Holders).ExpiresIn; left > long/2 {
			k.Errorf("the lease lasts another %v; want no more than the place would have lasted", left)
		}
	})

	s.test("ALateRepeatOfAReleasedClaimIsNotGranted", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(queue(long))
		slow.wantGranted(c)
		k.repeatLate(slow, c, c)
		k.b.wantHoldersWaiters(0, 0)
	})

	s.test("ALateRepeatOfAWaiterThatLeftDoesNotQueueAgain", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(queue(long))
		k.a.wantGranted(k.mutex())
		slow.wantPlace(c, 1)
		k.repeatLate(slow, c, c)
		k.b.wantHoldersWaiters(1, 0)
	})

	s.test("ALateRepeatOfAForceBreaksNoLaterHolder", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(force)
		k.a.wantGranted(k.mutex())
		slow.wantGranted(c)
		letArrive := slow.delayRequests()
		k.wantPromptReturn(k.ctxEnds()[0], slow.acquireCall(c))
		k.b.mustRelease(c)
		next := k.mutex()
		g := k.b.wantGranted(next)
		k.advancePast(2 * k.shortTimeout())
		letArrive()
		k.awaitArrival()
		k.a.wantFences(g.Fence)
		k.b.mustRenew(next)
	})
}

// repeatLate makes a repeat of c arrive too late, after the claims in released were
// released.
func (k *kit) repeatLate(slow *slowClient, c driver.Claim, released ...driver.Claim) {
	k.Helper()
	letArrive := slow.delayRequests()
	k.wantPromptReturn(k.ctxEnds()[0], slow.acquireCall(c))
	for _, r := range released {
		k.b.mustRelease(r)
	}
	k.advancePast(2 * k.shortTimeout())
	letArrive()
	k.awaitArrival()
}

// testLateReleases tests that a late release with HasEnd does nothing. testValueLate
// tests releases with a value.
func testLateReleases(s *suite) {
	s.test("AReleaseWithAnEndDoesNothingAfterIt", func(k *kit) {
		slow, held, queued := k.openSlow(), k.mutex(), k.mutex(queue(long))
		slow.wantGranted(held)
		slow.wantPlace(queued, 1)
		for _, w := range k.lateCtxEnds() {
			letArrive := slow.delayRequests()
			k.wantPromptReturn(w, slow.releaseWithEndCall(held), slow.releaseWithEndCall(queued))
			k.advancePast(2 * k.shortTimeout())
			letArrive()
			k.awaitArrival()
			k.b.wantHoldersWaiters(1, 1)
		}
		k.b.mustRenew(held)
		k.b.wantPlace(queued, 1)
	})

	s.test("AReleaseOfTheOnlyHolderDoesNothingAfterItsEnd", func(k *kit) {
		slow, held := k.openSlow(), k.mutex()
		g := slow.wantGranted(held)
		k.advancePast(0)
		letArrive := slow.delayRequests()
		k.wantPromptReturn(k.ctxEnds()[0], slow.releaseWithEndCall(held))
		k.advancePast(2 * k.shortTimeout())
		letArrive()
		k.awaitArrival()
		k.wantOneHolder(held.Name, g.Fence)
	})

	s.test("AReleaseWithAnEndReleasesBeforeIt", func(k *kit) {
		slow, c := k.openSlow(), k.mutex()
		slow.wantGranted(c)
		letArrive := slow.delayRequests()
		release := slow.releaseWithEndCall(c)
		release.begin(k.ctx)
		k.pause(k.shortTimeout() / 2)
		letArrive()
		if err := release.wait(); err != nil {
			k.Errorf("Release: %v; want nil", err)
		}
		k.b.wantHoldersWaiters(0, 0)
	})
}

// testGivenUp tests the promises to the caller of a call under way.
func testGivenUp(s *suite) {
	s.test("ACallReturnsSoonAfterItsCtxEnds", func(k *kit) {
		slow, held := k.openSlow(), k.mutex(named(k.nthName(9)))
		g := slow.wantGranted(held)
		for i, w := range k.ctxEnds() {
			letArrive := slow.delayRequests()
			k.wantPromptReturn(w, slow.callOfEachMethod(k.nthName(i), held, g.Fence+1)...)
			letArrive()
		}
	})

	s.test("ADelayedCallDelaysNoOtherBeyondItsCtx", func(k *kit) {
		far := k.openSlow()
		letArrive := far.delayRequests()
		first := far.acquireCall(k.mutex())
		first.begin(k.ctx)
		for _, w := range k.ctxEnds() {
			k.wantPromptReturn(w, far.acquireCall(k.mutex(named(k.nthName(1)))), far.acquireCall(k.mutex(named(k.nthName(2)))))
		}
		letArrive()
		if err := first.wait(); err != nil {
			k.Errorf("Acquire in time: %v; want it granted", err)
		}
	})

	s.test("PropertiesAndWatchDoNotWaitForTheBackend", func(k *kit) {
		far := k.openSlow()
		letArrive := far.delayRequests()
		defer letArrive()
		calls := []*call{far.newCall("Properties", func(context.Context) error {
			far.Properties()
			return nil
		})}
		if w, ok := far.Driver.(driver.Watcher); ok {
			calls = append(calls, far.newCall("Watch and its stop", func(context.Context) error {
				w.Watch(k.name, func() {})()
				return nil
			}))
		}
		for _, c := range calls {
			c.begin(k.ctx)
			select {
			case <-c.done:
			case <-k.afterSignalTimeout():
				k.failMissing("%s did not return, while a request was under way,", c.what)
			}
		}
	})

	s.test("AnAnswerAfterTheEndOfTheCtxIsNotAGrant", func(k *kit) {
		slow := k.openSlow()
		letArrive := slow.delayRequests()
		ctx, cancel := context.WithTimeout(k.ctx, 4*k.shortTimeout())
		defer cancel()
		var calls []*call
		for i := range 8 {
			calls = append(calls, slow.acquireCall(k.mutex(named(k.nthName(i)))))
			calls[i].begin(ctx)
		}
		k.pause(k.shortTimeout() / 2)
		cancel()
		letArrive() // the requests arrive before their end, and may be granted
		for _, c := range calls {
			k.wantCtxError(c.what, c.wait())
		}
	})

	for name, inTime := range map[string]bool{
		"TwoReleasesSettleAnUnknownClaim": true,
		"TwoReleasesSettleALateClaim":     false,
	} {
		s.test(name, func(k *kit) {
			slow := k.openSlow()
			ctx, cancel := context.WithTimeout(k.ctx, 2*k.shortTimeout())
			defer cancel()
			letArrive := slow.delayRequests()
			var calls []*call
			for i, mode := range []option{func(*driver.Claim) {}, queue(long), force} {
				calls = append(calls, slow.acquireCall(k.mutex(named(k.nthName(i)), mode)))
				calls[i].begin(ctx)
			}
			k.pause(k.shortTimeout() / 2)
			cancel()
			for _, c := range calls {
				k.wantCtxError(c.what, c.wait())
			}
			for _, c := range calls {
				k.releaseUnknown(k.b, c.claim) // the release may arrive before the claim
			}
			if inTime {
				letArrive()
				k.awaitArrival()
			}
			k.advancePast(2 * k.shortTimeout())
			for _, c := range calls {
				k.releaseUnknown(k.b, c.claim)
				k.wantFree(c.claim.Name)
			}
			letArrive()
			k.awaitArrival()
			for _, c := range calls {
				k.wantFree(c.claim.Name)
			}
		})
	}
}

// testNothingOutlivesItsCall tests that the effect of a call is visible when it returns,
// with whichever error, and that it has no later effect.
func testNothingOutlivesItsCall(s *suite) {
	s.test("TheEffectOfACallIsVisibleWhenItReturns", func(k *kit) {
		const tries = 60
		modes := []option{func(*driver.Claim) {}, queue(long), force}
		seen := make([]driver.Entry, tries)
		var all sync.WaitGroup
		for i := range tries {
			c := k.mutex(named(k.nthName(i)), modes[i%len(modes)])
			k.a.wantGranted(k.mutex(named(c.Name)))
			all.Go(func() {
				ctx, cancel := context.WithTimeout(k.ctx, time.Duration(i%20)*150*time.Microsecond)
				defer cancel()
				_, err := k.a.Acquire(ctx, c)
				if err != nil && !errors.Is(err, driver.ErrHeld) {
					k.wantCtxError("Acquire", err)
				}
				if seen[i], err = k.b.Inspect(k.ctx, c.Name); err != nil {
					k.Errorf("Inspect: %v", err)
				}
			})
		}
		all.Wait()
		k.awaitArrival()
		for i, before := range seen {
			now := k.b.entry(k.nthName(i))
			if before.Fence != now.Fence || len(before.Holders) != len(now.Holders) || len(before.Waiters) != len(now.Waiters) {
				k.Errorf("Inspect shows %+v, and showed %+v when the call returned", now, before)
			}
		}
	})

	s.test("OneReleaseAfterTheCallLeavesNothing", func(k *kit) {
		const tries = 60
		var all sync.WaitGroup
		for i := range tries {
			c := k.mutex(named(k.nthName(i)))
			all.Go(func() {
				ctx, cancel := context.WithTimeout(k.ctx, time.Duration(i%20)*150*time.Microsecond)
				defer cancel()
				_, _ = k.a.Acquire(ctx, c)
				k.releaseUnknown(k.b, c)
			})
		}
		all.Wait()
		k.awaitArrival()
		for i := range tries {
			k.wantFree(k.nthName(i))
		}
	})
}
