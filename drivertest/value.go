package drivertest

import (
	"bytes"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testValue tests the small value of a name.
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
		g := k.a.wantGranted(c)
		k.b.wantValue("one", g.Fence)
		k.b.mustRenewWith(withValue(c, "two"))
		k.a.wantValue("two", g.Fence)
		k.a.mustReleaseWith(withValue(c, "three"))
		k.b.wantValue("three", g.Fence)
		k.b.wantHoldersWaiters(0, 0)
		next := k.b.wantGranted(k.mutex(value("four")))
		k.a.wantValue("four", next.Fence)
	})

	if s.Clock != nil {
		s.test("SurvivesALeaseThatLastedForDays", func(k *kit) {
			c := k.mutex(value("one"), func(c *driver.Claim) { c.TTL = driver.MaxTTL })
			g := k.a.wantGranted(c)
			k.advance(10 * 24 * time.Hour)
			k.a.mustRelease(c)
			for range 100 { // each step may make the backend delete old names
				k.a.mustRelease(k.mustAcquire(k.mutex(named(k.nthName(1)))))
			}
			k.b.wantValue("one", g.Fence)
		})
	}

	s.test("AClaimWithoutAValueKeepsTheOldOne", func(k *kit) {
		first := k.mutex(value("one"))
		g := k.a.wantGranted(first)
		k.a.mustRenew(first)
		k.a.wantValue("one", g.Fence)
		k.a.mustRelease(first)
		k.b.wantValue("one", g.Fence)
		next := k.mutex()
		k.b.wantGranted(next)
		k.b.mustRenew(next)
		k.b.wantValue("one", g.Fence)
		k.b.mustRelease(next)
		k.a.wantValue("one", g.Fence)
	})

	s.test("AnEmptyValueIsNotNone", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.wantGranted(c)
		k.a.mustRenewWith(withValue(c, ""))
		k.b.wantValue("", g.Fence)
		k.a.mustReleaseWith(withValue(c, "two"))
		next := k.mutex(value(""))
		g = k.b.wantGranted(next)
		k.a.wantValue("", g.Fence)
		k.b.mustReleaseWith(withValue(next, ""))
		k.a.wantValue("", g.Fence)
	})

	s.test("AnyBytesAreKept", func(k *kit) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, v := range []string{string(all), "\x00", "\r\n", "\xff\xfe", "é\u2028{}", "0", "-1", string(bytes.Repeat(all, driver.MaxValue/len(all)))} {
			c := k.mutex(named(k.nthName(i)), value(v))
			g := k.a.wantGranted(c)
			k.b.wantValueOf(c.Name, v, g.Fence)
			k.b.mustRenewWith(withValue(c, "x"+v[1:]))
			k.a.wantValueOf(c.Name, "x"+v[1:], g.Fence)
			k.a.mustReleaseWith(withValue(c, v))
			k.b.wantValueOf(c.Name, v, g.Fence)
			k.b.wantValueNotBelow(k.mutex(named(c.Name), valueBelow(v)), v)
		}
	})

	s.test("EachNameHasItsOwn", func(k *kit) {
		one, two := k.mutex(named(k.nthName(1)), value("one")), k.mutex(named(k.nthName(2)), value("two"))
		f1, f2 := k.a.wantGranted(one).Fence, k.a.wantGranted(two).Fence
		if answers := k.b.renewAll(lease(k.mutex(named(k.nthName(3)), value("none"))), withValue(one, "1"), lease(two)); answers[1] != nil || answers[2] != nil {
			k.Fatalf("Renew: %v; want two of three done", answers)
		}
		k.b.wantValueOf(one.Name, "1", f1)
		k.b.wantValueOf(two.Name, "two", f2)
		if e := k.b.entry(k.nthName(3)); e.Value != nil {
			k.Errorf("a claim without a lease wrote %q", e.Value)
		}
	})

	s.test("ARepeatWritesNothing", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.wantGranted(c)
		k.a.mustRenewWith(withValue(c, "two"))
		k.a.wantGranted(c)
		k.b.wantGranted(c)
		k.b.wantValue("two", g.Fence)
	})

	s.test("OnlyAHolderWrites", func(k *kit) {
		c := k.mutex(value("one"))
		g := k.a.wantGranted(c)
		try, waiter, stranger := k.mutex(value("try")), k.mutex(value("waiter"), queue(long)), k.mutex()
		k.b.wantHeld(try)
		k.b.wantPlace(waiter, 1)
		for _, other := range []driver.Claim{waiter, stranger} {
			if err := k.b.renewAll(withValue(other, "renewal"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
				k.Errorf("Renew: %v; want ErrNoSuchLease", err)
			}
		}
		k.b.mustReleaseWith(withValue(waiter, "left"))
		if err := k.b.Release(k.ctx, withValue(stranger, "release")); !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Release: %v; want ErrNoSuchLease", err)
		}
		k.a.wantValue("one", g.Fence)
		k.a.mustRelease(c)
		if err := k.a.renewAll(withValue(c, "renewal"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Renew: %v; want ErrNoSuchLease", err)
		}
		k.b.wantValue("one", g.Fence)
	})

	s.test("ItOutlivesItsLease", func(k *kit) {
		c := k.mutex(value("one"), ttl(k.unit))
		g := k.a.wantGranted(c)
		k.advancePast(k.unit)
		k.b.wantHoldersWaiters(0, 0)
		k.b.wantValue("one", g.Fence)
		if err := k.a.renewAll(withValue(c, "two"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
			k.Errorf("Renew: %v; want ErrNoSuchLease, because it expired", err)
		}
		k.b.wantValue("one", g.Fence)
		k.b.wantValueNotBelow(k.mutex(valueBelow("one")), "one")
	})

	s.test("TheLastWriterOfSeveralHoldersWins", func(k *kit) {
		one, two := k.permits(1, 3, value("one")), k.permits(1, 3, value("two"))
		f1, f2 := k.a.wantGranted(one).Fence, k.b.wantGranted(two).Fence
		k.a.wantValue("two", f2)
		k.a.mustRenewWith(withValue(one, "three"))
		k.b.wantValue("three", f1)
		k.b.wantGranted(k.permits(1, 3)) // without a value
		k.b.wantValue("three", f1)
		k.b.mustReleaseWith(withValue(two, "four"))
		k.a.wantValue("four", f2)
	})

	s.test("AForceWritesIt", func(k *kit) {
		k.a.wantGranted(k.mutex(value("one")))
		g := k.b.wantGranted(k.mutex(force, value("two")))
		k.a.wantValue("two", g.Fence)
	})

	s.test("AReleaseWithAMinimumHoldWritesIt", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		l := withValue(c, "one")
		l.MinHold = long
		k.a.mustReleaseWith(l)
		k.b.wantValue("one", g.Fence)
		k.b.wantHoldersWaiters(1, 0)
	})

	if s.canBreak {
		s.test("ABreakLeavesIt", func(k *kit) {
			c := k.mutex(value("one"))
			g := k.a.wantGranted(c)
			k.b.mustBreak(g.Fence, 0, driver.Owner{Client: "op"})
			if err := k.a.renewAll(withValue(c, "two"))[0]; !errors.Is(err, driver.ErrNoSuchLease) {
				k.Errorf("Renew: %v; want ErrNoSuchLease, because it was broken", err)
			}
			k.b.wantValue("one", g.Fence)
		})
	}

	if s.canList {
		s.test("AListShowsIt", func(k *kit) {
			c := k.mutex(value("one\x00\xff"))
			g := k.a.wantGranted(c)
			for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
				if err != nil || string(e.Value) != "one\x00\xff" || e.ValueFence != g.Fence {
					k.Errorf("listed with the value %q, of fence %d, %v; want %q, of %d", e.Value, e.ValueFence, err, "one\x00\xff", g.Fence)
				}
			}
		})
	}

	if s.canRaise {
		s.test("ItsFenceIsRaisedWithItsLease", func(k *kit) {
			c := k.mutex(value("one"))
			raised := k.b.mustRaise(c, k.a.wantGranted(c).Fence+1000)
			k.b.wantValue("one", raised)
			k.a.mustRelease(c)
			next := k.mutex()
			k.a.mustRaise(next, k.a.wantGranted(next).Fence+1000) // its lease has written no value
			k.b.wantValue("one", raised)
		})

		s.test("OnlyTheFirstRaiseWritesIt", func(k *kit) {
			k.a.mustRelease(k.mustAcquire(k.mutex(value("one"))))
			c := k.mutex()
			g := k.a.wantGranted(c)
			raise := func(v string, fence uint64) {
				got, err := k.b.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, withValue(c, v), fence)
				if err != nil || got != fence {
					k.Fatalf("RaiseFence = %d, %v; want %d", got, err, fence)
				}
			}
			raise("two", g.Fence)
			k.a.wantValue("two", g.Fence)
			raise("three", g.Fence+5)
			k.a.wantValue("two", g.Fence+5)
			k.a.mustRenewWith(withValue(c, "four"))
			raise("five", g.Fence+9)
			k.b.wantValue("four", g.Fence+9)
			raise("six", g.Fence+9)
			k.b.wantValue("four", g.Fence+9)
		})

		s.test("ARaiseKeepsTheValueThatAnotherHolderWroteLater", func(k *kit) {
			one, two := k.reader(value("one")), k.reader()
			k.a.wantGranted(one)
			f2 := k.b.wantGranted(two).Fence
			k.b.mustRenewWith(withValue(two, "two"))
			raise := func(c driver.Claim) {
				if _, err := k.a.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, withValue(c, "three"), 1); err != nil {
					k.Fatalf("RaiseFence: %v", err)
				}
			}
			raise(one)
			raise(two)
			k.b.wantValue("two", f2)
		})
	}
}

func testValueAbove(s *suite) {
	s.test("AClaimThatIsNotAboveItIsRefusedForTheValue", func(k *kit) {
		c := k.mutex(risingValue("5"))
		g := k.a.wantGranted(c) // a name without a value is below every value
		for _, v := range []string{"5", "4", "49", ""} {
			if refused := k.b.wantValueNotBelow(k.mutex(risingValue(v)), "5"); refused.Fence != g.Fence {
				k.Errorf("refused for fence %d, want %d", refused.Fence, g.Fence)
			}
			k.b.wantValueNotBelow(k.mutex(risingValue(v), queue(long)), "5")
		}
		k.b.wantHeld(k.mutex(risingValue("6"))) // refused only because of the holder
		k.a.wantHoldersWaiters(1, 0)
		k.a.mustRelease(c)
		k.b.wantValueNotBelow(k.mutex(risingValue("5")), "5")
		k.b.wantHoldersWaiters(0, 0)
		k.b.wantValue("5", g.Fence)
		k.b.wantGranted(k.mutex(risingValue("50")))
	})

	s.test("ItIsComparedAsBytes", func(k *kit) {
		for _, v := range []string{"", "\x00", "\x00\x00", "\x01", "10", "9", "9\x00", "A", "a", "\x7f", "\x80", "é", "\xff", "\xff\x00", "\xff\xff"} {
			c := k.mutex(risingValue(v))
			k.a.wantGranted(c)
			k.a.mustRelease(c)
			k.b.wantValueNotBelow(k.mutex(risingValue(v)), v)
		}
	})

	s.test("TheConditionAndTheValueMayDiffer", func(k *kit) {
		k.a.mustRelease(k.mustAcquire(k.mutex(value("5"))))
		k.b.mustRelease(k.mustAcquire(k.mutex(valueBelow("6"), value("3"))))
		g := k.a.wantGranted(k.mutex(valueBelow("4"))) // it has no value
		e := k.b.wantValue("3", 0)
		if e.ValueFence >= g.Fence {
			k.Errorf("the value has the fence %d, although the claim with %d has no value", e.ValueFence, g.Fence)
		}
	})

	s.test("ARepeatOfAHolderIsAGrant", func(k *kit) {
		c := k.mutex(risingValue("5"))
		g := k.a.wantGranted(c)
		if again := k.b.wantGranted(c); again.Fence != g.Fence {
			k.Errorf("the repeat got the fence %d, the first %d", again.Fence, g.Fence)
		}
		k.a.mustRenewWith(withValue(c, "7"))
		k.b.wantGranted(c)
		k.b.wantValue("7", g.Fence)
	})

	s.test("AForceThatIsNotAboveItBreaksNoLease", func(k *kit) {
		c, waiter := k.mutex(value("5")), k.mutex(queue(long))
		g := k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		k.b.wantValueNotBelow(k.mutex(force, risingValue("5")), "5")
		k.a.wantHoldersWaiters(1, 1)
		k.a.mustRenew(c)
		k.a.wantValue("5", g.Fence)
		k.a.wantValue("6", k.b.wantGranted(k.mutex(force, risingValue("6"))).Fence)
	})

	s.test("OnlyOneOfManyClaimsForTheSameValueIsGranted", func(k *kit) {
		for _, tick := range []string{"1", "2", "3"} {
			granted := make(chan uint64, 8)
			k.inParallel(cap(granted), func(i int) {
				c := k.mutex(risingValue(tick), queue(long))
				fence, err := k.acquireUntilAnswered([]*client{k.a, k.b}[i%2], c)
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
				k.Fatalf("%d claims with the value %s were granted, want one", n, tick)
			}
			k.b.wantValue(tick, <-granted)
		}
		k.b.wantHoldersWaiters(0, 0)
	})
}

func testValueQueue(s *suite) {
	s.test("AWaiterWritesWhenItIsItsTurn", func(k *kit) {
		c, waiter := k.mutex(value("one")), k.mutex(value("two"), queue(long))
		g := k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		k.a.wantValue("one", g.Fence)
		k.a.mustRelease(c)
		second := k.b.wantGranted(waiter)
		k.a.wantValue("two", second.Fence)
	})

	s.test("AWaiterWritesTheValueOfItsLastRepeat", func(k *kit) {
		c, waiter := k.mutex(value("one")), k.mutex(value("two"), queue(long))
		k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		waiter.Value = []byte("three")
		k.b.wantPlace(waiter, 1)
		k.a.mustRelease(c)
		k.b.wantValue("three", k.b.wantGranted(waiter).Fence)
	})

	s.test("AWaiterWhoseRepeatIsNotAboveItLosesItsPlace", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		first, second := k.mutex(risingValue("5"), queue(long)), k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.mustRenewWith(withValue(c, "5"))
		k.a.wantValueNotBelow(first, "5")
		k.b.wantPlace(second, 1)
		k.a.wantHoldersWaiters(1, 1)
	})

	s.test("AWaiterNotAboveItAtItsTurnIsSkipped", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		var waiters []driver.Claim
		for i, v := range []string{"5", "4", "6", "7"} {
			waiters = append(waiters, k.mutex(risingValue(v), queue(long)))
			k.b.wantPlace(waiters[i], i+1)
		}
		k.a.mustReleaseWith(withValue(c, "5"))
		k.a.wantHoldersWaiters(1, 1) // in one step
		g := k.b.wantGranted(waiters[2])
		k.a.wantValue("6", g.Fence)
		k.b.wantValueNotBelow(waiters[0], "6")
		k.b.wantValueNotBelow(waiters[1], "6")
		k.b.wantPlace(waiters[3], 1)
		k.a.mustRelease(waiters[2])
		k.a.wantValue("7", k.b.wantGranted(waiters[3]).Fence)
	})

	s.test("AHeadRefusedForTheValueLetsTheNextIn", func(k *kit) {
		k.a.wantGranted(k.reader(value("5")))
		writer, reader := k.mutex(valueBelow("6"), queue(long)), k.reader(queue(long))
		k.a.wantPlace(writer, 1)
		k.b.wantPlace(reader, 2)
		writer.ValueBelow = []byte("5")
		k.a.wantValueNotBelow(writer, "5")
		k.b.wantHoldersWaiters(2, 0)
		k.b.wantGranted(reader)
	})

	s.test("AWaiterIsComparedWhenTheHolderHasExpired", func(k *kit) {
		k.a.wantGranted(k.mutex(value("5"), ttl(k.unit)))
		waiter, next := k.mutex(risingValue("6"), queue(long)), k.mutex(queue(long))
		k.b.wantPlace(waiter, 1)
		k.b.wantPlace(next, 2)
		k.advancePast(k.unit)
		k.a.wantValue("6", k.b.wantGranted(waiter).Fence)
	})

	if s.canSignal {
		s.test("AWaiterThatLosesItsTurnGetsARetry", func(k *kit) {
			c, first, second := k.mutex(), k.mutex(risingValue("5"), queue(long)), k.mutex(queue(long))
			retry, signals := k.b.listen(), k.b.listen() // the two signals arrive in any order
			k.a.wantGranted(c)
			k.b.wantPlace(first, 1)
			k.b.wantPlace(second, 2)
			k.a.mustReleaseWith(withValue(c, "5"))
			retry.awaitRetry(first)
			signals.wantSignal(driver.SignalGranted, second)
			k.b.wantValueNotBelow(first, "5")
		})
	}
}

func testValueLate(s *suite) {
	s.test("ARenewalOrAReleaseThatComesAfterItsEndWritesNothing", func(k *kit) {
		slow, c := k.openSlow(), k.mutex(value("one"))
		g := slow.wantGranted(c)
		for _, w := range k.lateCtxEnds() {
			letArrive := slow.delayRequests()
			k.wantPromptReturn(w, slow.renewCall(withValue(c, "late")), slow.releaseCall(withValue(c, "late")))
			k.advancePast(2 * k.shortTimeout())
			k.b.mustRenewWith(withValue(c, "two"))
			letArrive()
			k.awaitArrival()
			k.b.wantValue("two", g.Fence)
			k.b.wantFences(g.Fence)
		}
	})

	s.test("AClaimThatComesAfterItsEndWritesNothing", func(k *kit) {
		slow := k.openSlow()
		k.b.mustRelease(k.mustAcquire(k.mutex(value("one"))))
		for _, w := range k.lateCtxEnds() {
			letArrive := slow.delayRequests()
			k.wantPromptReturn(w, slow.acquireCall(k.mutex(value("late"))), slow.acquireCall(k.mutex(value("late"), force)))
			k.advancePast(2 * k.shortTimeout())
			letArrive()
			k.awaitArrival()
			k.b.wantValue("one", 0)
			k.b.wantHoldersWaiters(0, 0)
		}
	})
}
