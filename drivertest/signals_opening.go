package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

// testOpeningSignals requires a SignalRetry for the head of the queue if its name will
// open without a request. Otherwise the name stays idle until the head repeats its claim,
// because its last answer had a later time, or it was not the head then.
func testOpeningSignals(s *suite) {
	s.test("TheHeadGetsARetryWhenOnlyTheMinHoldIsLeft", func(k *kit) {
		c, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		signals := k.b.listen()
		k.a.wantGranted(c)
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.releaseWithMinHold(c, long)
		signals.awaitRetry(first) // otherwise it would claim again only at the end of the lease
		k.b.mustRelease(first)
		signals.awaitRetry(second)
	})

	s.test("TheHeadGetsARetryForEachMinHoldThatEndsSooner", func(k *kit) {
		one, two, waiter := k.permits(1, 2), k.permits(1, 2), k.permits(1, 2, queue(long))
		signals := k.b.listen()
		k.a.wantGranted(one)
		k.a.wantGranted(two)
		k.b.wantPlace(waiter, 1)
		k.a.releaseWithMinHold(one, 2*long)
		signals.awaitRetry(waiter)
		k.a.releaseWithMinHold(two, long)
		signals.awaitRetry(waiter)
	})

	s.test("TheNextGetsARetryWhenTheHeadGetsAPermitBesideAMinHold", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		first, second := k.permits(1, 2, queue(long)), k.permits(1, 2, queue(long))
		forFirst, forSecond := k.b.listen(), k.b.listen()
		k.a.wantGranted(one)
		k.a.wantGranted(two)
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.releaseWithMinHold(one, long)
		forFirst.awaitRetry(first)
		k.a.mustRelease(two)
		forFirst.wantSignal(driver.SignalGranted, first)
		forSecond.awaitRetry(second) // maybe before the other signal
	})

	s.test("TheNextGetsARetryWhenTheHeadLosesItsPlaceDuringALockDelay", func(k *kit) {
		first, second := k.mutex(queue(k.unit)), k.mutex(queue(long))
		signals := k.b.listen()
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(long)))
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.advancePast(k.unit)
		k.a.wantHeld(k.mutex())
		signals.awaitRetry(second)
	})

	if !s.canBreak {
		return
	}
	s.test("TheHeadGetsARetryWhenABreakClosesTheName", func(k *kit) {
		first, second := k.mutex(queue(long)), k.mutex(queue(long))
		signals := k.b.listen()
		g := k.a.wantGranted(k.mutex())
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.mustBreak(g.Fence, long, driver.Owner{Client: "op"})
		signals.awaitRetry(first)
		k.b.mustRelease(first)
		signals.awaitRetry(second)
	})
}
