package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

// testSignals runs if Properties().PushesGrants is true. Only speed may depend on
// signals, but without them the backend would be slower than it claims.
func testSignals(s *suite) {
	s.test("APromotedWaiterGetsASignalWithItsFence", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long), fences(5))
		signals := k.b.listen()
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.a.mustRelease(holder)
		sig := signals.wantSignal(driver.SignalGranted, waiter)
		g := k.b.wantGranted(waiter)
		if sig.Fence != g.Fence || sig.Fences != g.Fences {
			k.Errorf("the signal has the fence %d and a range of %d; the grant is %+v", sig.Fence, sig.Fences, g)
		}
	})

	s.test("EachOfSeveralPromotedWaitersGetsASignalOfItsGrant", func(k *kit) {
		holder := k.mutex()
		k.a.wantGranted(holder)
		fromA, fromB := k.a.listen(), k.b.listen()
		one, two := k.reader(queue(long)), k.reader(queue(long))
		k.a.wantPlace(one, 1)
		k.b.wantPlace(two, 2)
		k.b.mustRelease(holder)
		f1, f2 := fromA.wantSignal(driver.SignalGranted, one).Fence, fromB.wantSignal(driver.SignalGranted, two).Fence
		if s.NodeClocksDiffer && f2 < f1 {
			f1, f2 = f2, f1
		}
		k.a.wantFences(f1, f2)
	})

	s.test("AWaiterGetsASignalWhenTheOneAheadLeaves", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		large, small := k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		signals := k.b.listen()
		k.a.wantPlace(large, 1)
		k.b.wantPlace(small, 2)
		k.a.mustRelease(large)
		signals.wantSignal(driver.SignalGranted, small)
	})

	s.test("AWaiterGetsASignalWhenAnotherClientFindsTheHolderExpired", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		waiter := k.mutex(queue(8 * k.unit))
		signals := k.b.listen()
		k.b.wantPlace(waiter, 1)
		k.advancePast(k.unit)
		k.a.wantHeld(k.mutex())
		signals.wantSignal(driver.SignalGranted, waiter)
	})

	testOpeningSignals(s)

	s.test("AForcedOutHolderGetsASignalOfItsLoss", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		fromA, fromB := k.a.listen(), k.b.listen()
		k.a.wantGranted(one)
		k.b.wantGranted(two)
		k.b.wantGranted(k.mutex(force))
		fromA.wantSignal(driver.SignalLost, one)
		fromB.wantSignal(driver.SignalLost, two)
	})

	s.test("APromotedHolderGetsASignalOfItsLoss", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		signals := k.b.listen()
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.a.mustRelease(holder)
		signals.wantSignal(driver.SignalGranted, waiter)
		k.a.wantGranted(k.mutex(force))
		signals.wantSignal(driver.SignalLost, waiter)
	})

	if s.canBreak {
		s.test("ABrokenHolderGetsASignalOfItsLoss", func(k *kit) {
			c := k.mutex()
			signals := k.a.listen()
			g := k.a.wantGranted(c)
			k.b.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			signals.wantSignal(driver.SignalLost, c)
		})

		s.test("AWaiterGetsASignalWhenTheHolderIsBroken", func(k *kit) {
			waiter := k.mutex(queue(long))
			signals := k.b.listen()
			g := k.a.wantGranted(k.mutex())
			k.b.wantPlace(waiter, 1)
			k.a.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			signals.wantSignal(driver.SignalGranted, waiter)
		})
	}

	s.test("EveryListenerGetsSignalsUntilItIsStopped", func(k *kit) {
		first, second, stopped := k.b.listen(), k.b.listen(), k.b.listen()
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		stopped.stop()
		stopped.stop() // a second call does nothing
		k.a.mustRelease(holder)
		first.wantSignal(driver.SignalGranted, waiter)
		second.wantSignal(driver.SignalGranted, waiter)
		for len(stopped.signals) > 0 { // it may have received SignalRetry before it was stopped
			if sig := <-stopped.signals; sig.Token == waiter.Token {
				k.Errorf("a stopped listener received %+v", sig)
			}
		}
	})

	s.test("NoClientGetsSignalsForTokensOfAnotherClient", func(k *kit) {
		otherSignals, ownSignals := k.a.listen(), k.b.listen()
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.a.mustRelease(holder)
		ownSignals.wantSignal(driver.SignalGranted, waiter) // a signal to the other client would have arrived by now
		for {
			select {
			case sig := <-otherSignals.signals:
				if sig.Token == waiter.Token {
					k.Fatalf("another client received %+v", sig)
				}
				continue
			default:
			}
			break
		}
	})
}

// listener collects the signals of one client.
type listener struct {
	k       *kit
	signals chan driver.Signal
	stop    func()
}

func (d *client) listen() *listener {
	// A listener must not block. No test sends more signals than fit.
	l := &listener{k: d.k, signals: make(chan driver.Signal, 1024)}
	signaler, _ := driver.As[driver.Signaler](d.Driver)
	l.stop = signaler.Listen(func(s driver.Signal) {
		select {
		case l.signals <- s:
		default:
		}
	})
	d.k.Cleanup(l.stop)
	return l
}

// wantSignal waits for a signal of this kind for this claim. It ignores other signals,
// because SignalRetry and repeats may come before.
func (l *listener) wantSignal(kind driver.SignalKind, c driver.Claim) driver.Signal {
	l.k.Helper()
	missing := l.k.afterSignalTimeout()
	for {
		select {
		case s := <-l.signals:
			if s.Kind == kind && s.Token == c.Token {
				return s
			}
		case <-missing:
			l.k.failMissing("no signal of kind %d for the token arrived", kind)
		}
	}
}
