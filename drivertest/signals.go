package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

// testSignals runs if Properties().PushesGrants says that signals arrive. Nothing may
// depend on one, but a backend whose signals never come is slower than it claims.
func testSignals(s *suite) {
	s.test("APromotedWaiterGetsASignalWithItsFence", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long), fences(5))
		heard := k.b.listen()
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		k.a.releases(holder)
		sig := heard.next(driver.SignalGranted, waiter)
		g := k.b.gets(waiter)
		if sig.Fence != g.Fence || sig.Fences != g.Fences {
			k.Errorf("heard the fence %d and a range of %d; the grant is %+v", sig.Fence, sig.Fences, g)
		}
	})

	s.test("EachOfSeveralPromotedWaitersGetsASignalOfItsGrant", func(k *kit) {
		holder := k.mutex()
		k.a.gets(holder)
		fromA, fromB := k.a.listen(), k.b.listen()
		one, two := k.reader(queue(long)), k.reader(queue(long))
		k.a.waits(one, 1)
		k.b.waits(two, 2)
		k.b.releases(holder)
		f1, f2 := fromA.next(driver.SignalGranted, one).Fence, fromB.next(driver.SignalGranted, two).Fence
		if s.AgreesLate && f2 < f1 {
			f1, f2 = f2, f1
		}
		k.a.heldBy(f1, f2)
	})

	s.test("AWaiterGetsASignalWhenTheOneAheadLeaves", func(k *kit) {
		k.a.gets(k.permits(1, 3))
		large, small := k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		heard := k.b.listen()
		k.a.waits(large, 1)
		k.b.waits(small, 2)
		k.a.releases(large)
		heard.next(driver.SignalGranted, small)
	})

	s.test("AWaiterGetsASignalWhenAnotherClientFindsTheHolderExpired", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u)))
		waiter := k.mutex(queue(8 * k.u))
		heard := k.b.listen()
		k.b.waits(waiter, 1)
		k.past(k.u)
		k.a.refused(k.mutex())
		heard.next(driver.SignalGranted, waiter)
	})

	testOpening(s)

	s.test("AForcedOutHolderGetsASignalOfItsLoss", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		fromA, fromB := k.a.listen(), k.b.listen()
		k.a.gets(one)
		k.b.gets(two)
		k.b.gets(k.mutex(force))
		fromA.next(driver.SignalLost, one)
		fromB.next(driver.SignalLost, two)
	})

	s.test("APromotedHolderGetsASignalOfItsLoss", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		heard := k.b.listen()
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		k.a.releases(holder)
		heard.next(driver.SignalGranted, waiter)
		k.a.gets(k.mutex(force))
		heard.next(driver.SignalLost, waiter)
	})

	if s.breaks {
		s.test("ABrokenHolderGetsASignalOfItsLoss", func(k *kit) {
			c := k.mutex()
			heard := k.a.listen()
			g := k.a.gets(c)
			k.b.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			heard.next(driver.SignalLost, c)
		})

		s.test("AWaiterGetsASignalWhenTheHolderIsBroken", func(k *kit) {
			waiter := k.mutex(queue(long))
			heard := k.b.listen()
			g := k.a.gets(k.mutex())
			k.b.waits(waiter, 1)
			k.a.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			heard.next(driver.SignalGranted, waiter)
		})
	}

	s.test("EveryListenerGetsSignalsUntilItIsStopped", func(k *kit) {
		first, second, stopped := k.b.listen(), k.b.listen(), k.b.listen()
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		stopped.stop()
		stopped.stop() // a second call does nothing
		k.a.releases(holder)
		first.next(driver.SignalGranted, waiter)
		second.next(driver.SignalGranted, waiter)
		for len(stopped.heard) > 0 { // before it was stopped it may have received SignalRetry
			if sig := <-stopped.heard; sig.Token == waiter.Token {
				k.Errorf("a stopped listener heard %+v", sig)
			}
		}
	})

	s.test("NoClientGetsSignalsForTokensOfAnotherClient", func(k *kit) {
		theirs, mine := k.a.listen(), k.b.listen()
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		k.a.releases(holder)
		mine.next(driver.SignalGranted, waiter) // by then the other's would have come, too
		for {
			select {
			case sig := <-theirs.heard:
				if sig.Token == waiter.Token {
					k.Fatalf("another client heard %+v", sig)
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
	k     *kit
	heard chan driver.Signal
	stop  func()
}

func (d *client) listen() *listener {
	// A listener does not block. No test sends more signals than fit.
	l := &listener{k: d.k, heard: make(chan driver.Signal, 1024)}
	signaler, _ := driver.As[driver.Signaler](d.Driver)
	l.stop = signaler.Listen(func(s driver.Signal) {
		select {
		case l.heard <- s:
		default:
		}
	})
	d.k.Cleanup(l.stop)
	return l
}

// next waits for the signal of this kind for this claim. Other signals may come before
// it: SignalRetry, and repeats.
func (l *listener) next(kind driver.SignalKind, c driver.Claim) driver.Signal {
	l.k.Helper()
	missing := l.k.overdue()
	for {
		select {
		case s := <-l.heard:
			if s.Kind == kind && s.Token == c.Token {
				return s
			}
		case <-missing:
			l.k.missed("no signal of kind %d for the token came", kind)
		}
	}
}
