package drivertest

import (
	"bytes"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testValue: the small value that a name keeps.
func testValue(s *suite) {
	testValueWrites(s)
	testValueAbove(s)
	testValueQueue(s)
	if !s.NoNetwork {
		testValueLate(s)
	}
}

func testValueWrites(s *suite) {
	s.test("AGrantARenewalAndAReleaseWriteIt", func(k *kit) {
		if e := k.b.entry(k.name); e.Value != nil || e.ValueFence != 0 {
			k.Fatalf("a new name has the value %q, of fence %d; want none", e.Value, e.ValueFence)
		}
		c := k.mutex(value("one"))
		g := k.a.gets(c)
		k.b.finds("one", g.Fence)
		k.b.writes(withValue(c, "two"))
		k.a.finds("two", g.Fence)
		k.a.endsWith(withValue(c, "three"))
		k.b.finds("three", g.Fence)
		k.b.seesHoldersWaiters(0, 0)
		next := k.b.gets(k.mutex(value("four")))
		k.a.finds("four", next.Fence)
	})

	if s.Clock != nil {
		s.test("IsThereAfterALeaseThatLastedForDays", func(k *kit) {
			c := k.mutex(value("one"), func(c *driver.Claim) { c.TTL = driver.MaxTTL })
			g := k.a.gets(c)
			k.pass(10 * 24 * time.Hour)
			k.a.releases(c)
			for range 100 { // each step may make the backend forget old names
				k.a.releases(k.granted(k.mutex(on(k.nth(1)))))
			}
			k.b.finds("one", g.Fence)
		})
	}

	s.test("NoneLeavesWhatThereIs", func(k *kit) {
		first := k.mutex(value("one"))
		g := k.a.gets(first)
		k.a.keeps(first)
		k.a.finds("one", g.Fence)
		k.a.releases(first)
		k.b.finds("one", g.Fence)
		next := k.mutex()
		k.b.gets(next)
		k.b.keeps(next)
		k.b.finds("one", g.Fence)
		k.b.releases(next)
		k.a.finds("one", g.Fence)
	})

	s.test("AnEmptyOneIsNotNone", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.gets(c)
		k.a.writes(withValue(c, ""))
		k.b.finds("", g.Fence)
		k.a.endsWith(withValue(c, "two"))
		next := k.mutex(value(""))
		g = k.b.gets(next)
		k.a.finds("", g.Fence)
		k.b.endsWith(withValue(next, ""))
		k.a.finds("", g.Fence)
	})

	s.test("AnyBytesAreKept", func(k *kit) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, v := range []string{string(all), "\x00", "\r\n", "\xff\xfe", "é\u2028{}", "0", "-1", string(bytes.Repeat(all, driver.MaxValue/len(all)))} {
			c := k.mutex(on(k.nth(i)), value(v))
			g := k.a.gets(c)
			k.b.findsAt(c.Name, v, g.Fence)
			k.b.writes(withValue(c, "x"+v[1:]))
			k.a.findsAt(c.Name, "x"+v[1:], g.Fence)
			k.a.endsWith(withValue(c, v))
			k.b.findsAt(c.Name, v, g.Fence)
			k.b.refusedFor(k.mutex(on(c.Name), valueBelow(v)), v)
		}
	})

	s.test("EachNameHasItsOwn", func(k *kit) {
		one, two := k.mutex(on(k.nth(1)), value("one")), k.mutex(on(k.nth(2)), value("two"))
		f1, f2 := k.a.gets(one).Fence, k.a.gets(two).Fence
		if answers := k.b.renewAll(lease(k.mutex(on(k.nth(3)), value("none"))), withValue(one, "1"), lease(two)); answers[1] != nil || answers[2] != nil {
			k.Fatalf("Renew: %v; want two of three done", answers)
		}
		k.b.findsAt(one.Name, "1", f1)
		k.b.findsAt(two.Name, "two", f2)
		if e := k.b.entry(k.nth(3)); e.Value != nil {
			k.Errorf("who does not hold wrote %q", e.Value)
		}
	})

	s.test("ARepeatWritesNothing", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.gets(c)
		k.a.writes(withValue(c, "two"))
		k.a.gets(c)
		k.b.gets(c)
		k.b.finds("two", g.Fence)
	})

	s.test("OnlyAHolderWrites", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.gets(c)
		try, waiter, stranger := k.mutex(value("try")), k.mutex(value("waiter"), queue(long)), k.mutex()
		k.b.refused(try)
		k.b.waits(waiter, 1)
		for _, other := range []driver.Claim{waiter, stranger} {
			if err := k.b.renewAll(withValue(other, "renewal"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
				k.Errorf("Renew: %v; want ErrNoSuchLease", err)
			}
		}
		k.b.endsWith(withValue(waiter, "left"))
		if err := k.b.Release(k.ctx, withValue(stranger, "release")); !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Release: %v; want ErrNoSuchLease", err)
		}
		k.a.finds("one", g.Fence)
		k.a.releases(c)
		if err := k.a.renewAll(withValue(c, "renewal"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Renew: %v; want ErrNoSuchLease", err)
		}
		k.b.finds("one", g.Fence)
	})

	s.test("ItOutlivesItsLease", func(k *kit) {
		c := k.mutex(value("one"), ttl(k.u))
		g := k.a.gets(c)
		k.past(k.u)
		k.b.seesHoldersWaiters(0, 0)
		k.b.finds("one", g.Fence)
		if err := k.a.renewAll(withValue(c, "two"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Renew: %v; want ErrNoSuchLease, because it expired", err)
		}
		k.b.finds("one", g.Fence)
		k.b.refusedFor(k.mutex(valueBelow("one")), "one")
	})

	s.test("OfLeasesSideBySideTheLastToWriteWroteIt", func(k *kit) {
		one, two := k.permits(1, 3, value("one")), k.permits(1, 3, value("two"))
		f1, f2 := k.a.gets(one).Fence, k.b.gets(two).Fence
		k.a.finds("two", f2)
		k.a.writes(withValue(one, "three"))
		k.b.finds("three", f1)
		k.b.gets(k.permits(1, 3)) // without a value
		k.b.finds("three", f1)
		k.b.endsWith(withValue(two, "four"))
		k.a.finds("four", f2)
	})

	s.test("AForceWritesIt", func(k *kit) {
		k.a.gets(k.mutex(value("one")))
		g := k.b.gets(k.mutex(force, value("two")))
		k.a.finds("two", g.Fence)
	})

	s.test("AReleaseWithAMinimumHoldWritesIt", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		l := withValue(c, "one")
		l.MinHold = long
		k.a.endsWith(l)
		k.b.finds("one", g.Fence)
		k.b.seesHoldersWaiters(1, 0)
	})

	if s.breaks {
		s.test("ABreakLeavesIt", func(k *kit) {
			c := k.mutex(value("one"))
			g := k.a.gets(c)
			k.b.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			if err := k.a.renewAll(withValue(c, "two"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
				k.Errorf("Renew: %v; want ErrNoSuchLease, because it was broken", err)
			}
			k.b.finds("one", g.Fence)
		})
	}

	if s.lists {
		s.test("AListShowsIt", func(k *kit) {
			c := k.mutex(value("one\x00\xff"))
			g := k.a.gets(c)
			for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
				if err != nil || string(e.Value) != "one\x00\xff" || e.ValueFence != g.Fence {
					k.Errorf("listed with the value %q, of fence %d, %v; want %q, of %d", e.Value, e.ValueFence, err, "one\x00\xff", g.Fence)
				}
			}
		})
	}

	if s.raises {
		s.test("ItsFenceIsRaisedWithItsLease", func(k *kit) {
			c := k.mutex(value("one"))
			high := k.b.raises(c, k.a.gets(c).Fence+1000)
			k.b.finds("one", high)
			k.a.releases(c)
			next := k.mutex()
			k.a.raises(next, k.a.gets(next).Fence+1000) // it wrote nothing
			k.b.finds("one", high)
		})

		s.test("OnlyTheFirstRaiseWritesIt", func(k *kit) {
			k.a.releases(k.granted(k.mutex(value("one"))))
			c := k.mutex()
			g := k.a.gets(c)
			raise := func(v string, fence uint64) {
				got, err := k.b.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, withValue(c, v), fence)
				if err != nil || got != fence {
					k.Fatalf("RaiseFence = %d, %v; want %d", got, err, fence)
				}
			}
			raise("two", g.Fence)
			k.a.finds("two", g.Fence)
			raise("three", g.Fence+5)
			k.a.finds("two", g.Fence+5)
			k.a.writes(withValue(c, "four"))
			raise("five", g.Fence+9)
			k.b.finds("four", g.Fence+9)
			raise("six", g.Fence+9)
			k.b.finds("four", g.Fence+9)
		})

		s.test("ARaiseOfALeaseThatHasWrittenLeavesWhatOthersWroteSince", func(k *kit) {
			one, two := k.reader(value("one")), k.reader()
			k.a.gets(one)
			f2 := k.b.gets(two).Fence
			k.b.writes(withValue(two, "two"))
			raise := func(c driver.Claim) {
				if _, err := k.a.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, withValue(c, "three"), 1); err != nil {
					k.Fatalf("RaiseFence: %v", err)
				}
			}
			raise(one)
			raise(two)
			k.b.finds("two", f2)
		})
	}
}

func testValueAbove(s *suite) {
	s.test("AClaimThatIsNotAboveItIsRefusedForTheValue", func(k *kit) {
		c := k.mutex(rising("5"))
		g := k.a.gets(c) // a name without a value is below all
		for _, v := range []string{"5", "4", "49", ""} {
			if refused := k.b.refusedFor(k.mutex(rising(v)), "5"); refused.Fence != g.Fence {
				k.Errorf("refused for fence %d, want %d", refused.Fence, g.Fence)
			}
			k.b.refusedFor(k.mutex(rising(v), queue(long)), "5")
		}
		k.b.refused(k.mutex(rising("6"))) // it is only held
		k.a.seesHoldersWaiters(1, 0)
		k.a.releases(c)
		k.b.refusedFor(k.mutex(rising("5")), "5")
		k.b.seesHoldersWaiters(0, 0)
		k.b.finds("5", g.Fence)
		k.b.gets(k.mutex(rising("50")))
	})

	s.test("ItIsComparedAsBytes", func(k *kit) {
		for _, v := range []string{"", "\x00", "\x00\x00", "\x01", "10", "9", "9\x00", "A", "a", "\x7f", "\x80", "é", "\xff", "\xff\x00", "\xff\xff"} {
			c := k.mutex(rising(v))
			k.a.gets(c)
			k.a.releases(c)
			k.b.refusedFor(k.mutex(rising(v)), v)
		}
	})

	s.test("TheConditionNeedNotBeWhatIsWritten", func(k *kit) {
		k.a.releases(k.granted(k.mutex(value("5"))))
		k.b.releases(k.granted(k.mutex(valueBelow("6"), value("3"))))
		g := k.a.gets(k.mutex(valueBelow("4"))) // it writes nothing
		e := k.b.finds("3", 0)
		if e.ValueFence >= g.Fence {
			k.Errorf("the value is of fence %d, and %d wrote nothing", e.ValueFence, g.Fence)
		}
	})

	s.test("ARepeatOfAHolderIsAGrant", func(k *kit) {
		c := k.mutex(rising("5"))
		g := k.a.gets(c)
		if again := k.b.gets(c); again.Fence != g.Fence {
			k.Errorf("the repeat got the fence %d, the first %d", again.Fence, g.Fence)
		}
		k.a.writes(withValue(c, "7"))
		k.b.gets(c)
		k.b.finds("7", g.Fence)
	})

	s.test("AForceThatIsNotAboveItBreaksNoLease", func(k *kit) {
		c, waiter := k.mutex(value("5")), k.mutex(queue(long))
		g := k.a.gets(c)
		k.b.waits(waiter, 1)
		k.b.refusedFor(k.mutex(force, rising("5")), "5")
		k.a.seesHoldersWaiters(1, 1)
		k.a.keeps(c)
		k.a.finds("5", g.Fence)
		k.a.finds("6", k.b.gets(k.mutex(force, rising("6"))).Fence)
	})

	s.test("OfManyThatWantTheSameOneGetsIt", func(k *kit) {
		for _, tick := range []string{"1", "2", "3"} {
			granted := make(chan uint64, 8)
			k.together(cap(granted), func(i int) {
				c := k.mutex(rising(tick), queue(long))
				fence, err := k.untilAnswered([]*client{k.a, k.b}[i%2], c)
				switch {
				case err == nil:
					granted <- fence
					if err := k.a.Release(k.ctx, lease(c)); err != nil {
						k.Errorf("Release: %v", err)
					}
				case !errors.Is(err, driver.ErrValueNotBelow):
					k.Errorf("Acquire: %v; want it granted, or refused for the value", err)
				}
			})
			if n := len(granted); n != 1 {
				k.Fatalf("%d claims of %s were granted, want one", n, tick)
			}
			k.b.finds(tick, <-granted)
		}
		k.b.seesHoldersWaiters(0, 0)
	})
}

func testValueQueue(s *suite) {
	s.test("AWaiterWritesWhenItIsItsTurn", func(k *kit) {
		c, waiter := k.mutex(value("one")), k.mutex(value("two"), queue(long))
		g := k.a.gets(c)
		k.b.waits(waiter, 1)
		k.a.finds("one", g.Fence)
		k.a.releases(c)
		second := k.b.gets(waiter)
		k.a.finds("two", second.Fence)
	})

	s.test("AWaiterWritesWhatItAskedForLast", func(k *kit) {
		c, waiter := k.mutex(value("one")), k.mutex(value("two"), queue(long))
		k.a.gets(c)
		k.b.waits(waiter, 1)
		waiter.Value = []byte("three")
		k.b.waits(waiter, 1)
		k.a.releases(c)
		k.b.finds("three", k.b.gets(waiter).Fence)
	})

	s.test("AWaiterThatAsksAndIsNotAboveItLosesItsPlace", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		first, second := k.mutex(rising("5"), queue(long)), k.mutex(queue(long))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.a.writes(withValue(c, "5"))
		k.a.refusedFor(first, "5")
		k.b.waits(second, 1)
		k.a.seesHoldersWaiters(1, 1)
	})

	s.test("AWaiterWhoseTurnItIsAndIsNotAboveItLosesItToTheNext", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		var waiters []driver.Claim
		for i, v := range []string{"5", "4", "6", "7"} {
			waiters = append(waiters, k.mutex(rising(v), queue(long)))
			k.b.waits(waiters[i], i+1)
		}
		k.a.endsWith(withValue(c, "5"))
		k.a.seesHoldersWaiters(1, 1) // in one step
		g := k.b.gets(waiters[2])
		k.a.finds("6", g.Fence)
		k.b.refusedFor(waiters[0], "6")
		k.b.refusedFor(waiters[1], "6")
		k.b.waits(waiters[3], 1)
		k.a.releases(waiters[2])
		k.a.finds("7", k.b.gets(waiters[3]).Fence)
	})

	s.test("AHeadThatLeavesForItLetsTheNextIn", func(k *kit) {
		k.a.gets(k.reader(value("5")))
		writer, reader := k.mutex(valueBelow("6"), queue(long)), k.reader(queue(long))
		k.a.waits(writer, 1)
		k.b.waits(reader, 2)
		writer.ValueBelow = []byte("5")
		k.a.refusedFor(writer, "5")
		k.b.seesHoldersWaiters(2, 0)
		k.b.gets(reader)
	})

	s.test("AWaiterIsComparedWhenTheHolderHasExpired", func(k *kit) {
		k.a.gets(k.mutex(value("5"), ttl(k.u)))
		waiter, next := k.mutex(rising("6"), queue(long)), k.mutex(queue(long))
		k.b.waits(waiter, 1)
		k.b.waits(next, 2)
		k.past(k.u)
		k.a.finds("6", k.b.gets(waiter).Fence)
	})

	if s.signals {
		s.test("AWaiterThatLosesItsTurnGetsARetry", func(k *kit) {
			c, first, second := k.mutex(), k.mutex(rising("5"), queue(long)), k.mutex(queue(long))
			retry, heard := k.b.listen(), k.b.listen() // the two come in any order
			k.a.gets(c)
			k.b.waits(first, 1)
			k.b.waits(second, 2)
			k.a.endsWith(withValue(c, "5"))
			retry.awaitRetry(first)
			heard.next(driver.SignalGranted, second)
			k.b.refusedFor(first, "5")
		})
	}
}

func testValueLate(s *suite) {
	s.test("ARenewalOrAReleaseThatComesAfterItsEndWritesNothing", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(value("one"))
		g := slow.gets(c)
		for _, w := range k.lateWays() {
			letGo := slow.hold()
			k.givesUp(w, slow.renewsWith(withValue(c, "late")), slow.releasesWith(withValue(c, "late")))
			k.past(2 * k.shortTimeout())
			k.b.writes(withValue(c, "two"))
			letGo()
			k.awaitArrival()
			k.b.finds("two", g.Fence)
			k.b.heldBy(g.Fence)
		}
	})

	s.test("AClaimThatComesAfterItsEndWritesNothing", func(k *kit) {
		slow := k.openSlow()
		k.b.releases(k.granted(k.mutex(value("one"))))
		for _, w := range k.lateWays() {
			letGo := slow.hold()
			k.givesUp(w, slow.asks(k.mutex(value("late"))), slow.asks(k.mutex(value("late"), force)))
			k.past(2 * k.shortTimeout())
			letGo()
			k.awaitArrival()
			k.b.finds("one", 0)
			k.b.seesHoldersWaiters(0, 0)
		}
	})
}
