package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testAll tests claims of several names, which are granted in one step or not at all.
func testAll(s *suite) {
	s.test("EachIsGrantedWithAFenceOfItsOwn", func(k *kit) {
		claims := k.newClaims(k.mutex, k.reader, func(o ...option) driver.Claim { return k.permits(2, 3, o...) }, k.mutex)
		first := k.mutex(named(claims[3].Name))
		before := k.a.wantGranted(first)
		k.a.mustRelease(first)
		for i, g := range k.a.wantAllGranted(claims) {
			if g.Fences < 1 || g.TTL != claims[i].TTL {
				k.Errorf("the grant is %+v, want the TTL %v", g, claims[i].TTL)
			}
			k.wantOneHolder(claims[i].Name, g.Fence)
			if i == 3 && g.Fence <= before.Fence {
				k.Errorf("the fence %d after %d; want it to rise", g.Fence, before.Fence)
			}
		}
		k.b.wantGranted(k.reader(named(claims[1].Name)))
		k.b.wantHeld(k.reader(named(claims[0].Name)))
		k.b.wantGranted(k.permits(1, 3, named(claims[2].Name)))
		k.b.wantHeld(k.permits(1, 3, named(claims[2].Name)))
		for _, c := range claims {
			k.b.mustRenew(c)
			k.b.mustRelease(c)
		}
	})

	s.test("ASingleClaimIsGrantedAsByAcquire", func(k *kit) {
		for _, kind := range []func(...option) driver.Claim{k.mutex, k.reader, func(o ...option) driver.Claim { return k.permits(2, 3, o...) }} {
			claims := k.newClaims(kind)
			holder := k.mutex(named(claims[0].Name))
			g := k.b.wantGranted(holder)
			if held := k.a.wantNoneGranted(claims); held.Name != holder.Name || held.Holder.Fence != g.Fence {
				k.Errorf("%q is in the way, held by %+v; want %q, by the fence %d", held.Name, held.Holder, holder.Name, g.Fence)
			}
			k.b.mustRelease(holder)
			next := k.a.wantAllGranted(claims)[0]
			if next.Fence <= g.Fence || next.TTL != claims[0].TTL {
				k.Errorf("the grant is %+v after the fence %d; want a greater fence, and the TTL %v", next, g.Fence, claims[0].TTL)
			}
			k.wantOneHolder(holder.Name, next.Fence)
			k.a.mustRenew(claims[0])
			k.a.mustRelease(claims[0])
			k.wantFree(holder.Name)
		}
	})

	s.test("NoneIsGrantedIfOneIsHeld", func(k *kit) {
		for at := range 3 {
			claims := k.newClaims(k.mutex, k.mutex, k.mutex)
			holder := k.mutex(named(claims[at].Name))
			g := k.b.wantGranted(holder)
			held := k.a.wantNoneGranted(claims)
			if held.Name != claims[at].Name || held.Holders != 1 || held.Holder.Fence != g.Fence || held.Position != 0 {
				k.Errorf("%q is in the way, held by %+v, position %d; want %q, by the fence %d", held.Name, held.Holder, held.Position, claims[at].Name, g.Fence)
			}
			for i, c := range claims {
				if i == at {
					k.wantOneHolder(c.Name, g.Fence)
					continue
				}
				k.wantFree(c.Name)
				k.a.wantNothingToRelease(c)
			}
			k.b.mustRelease(holder)
			k.a.wantAllGranted(claims)
		}
	})

	s.test("TheErrorNamesTheFirstHeldName", func(k *kit) {
		claims := k.newClaims(k.mutex, k.mutex, k.mutex)
		for _, at := range []int{2, 1} {
			k.b.wantGranted(k.reader(named(claims[at].Name)))
			if held := k.a.wantNoneGranted(claims); held.Name != claims[at].Name {
				k.Errorf("%q is in the way, want %q", held.Name, claims[at].Name)
			}
		}
	})

	s.test("NoWaiterIsPassed", func(k *kit) {
		claims := k.newClaims(k.mutex, k.reader)
		k.b.wantGranted(k.reader(named(claims[1].Name)))
		k.b.wantPlace(k.mutex(named(claims[1].Name), queue(long)), 1)
		if held := k.a.wantNoneGranted(claims); held.Name != claims[1].Name {
			k.Errorf("%q is in the way, want %q", held.Name, claims[1].Name)
		}
		k.wantFree(claims[0].Name)
	})

	s.test("AnExpiredHolderIsNotInTheWay", func(k *kit) {
		claims := k.newClaims(k.mutex, k.mutex)
		k.b.wantGranted(k.mutex(named(claims[1].Name), ttl(k.unit)))
		k.a.wantNoneGranted(claims)
		k.advancePast(k.unit)
		k.a.wantAllGranted(claims)
	})

	s.test("AnExpiredHolderIsFollowedByItsWaiter", func(k *kit) {
		claims := k.newClaims(k.mutex, k.mutex)
		waiter := k.mutex(named(claims[0].Name), queue(long))
		k.b.wantGranted(k.mutex(named(waiter.Name), ttl(k.unit)))
		k.b.wantPlace(waiter, 1)
		k.advancePast(k.unit)
		if held := k.a.wantNoneGranted(claims); held.Name != waiter.Name {
			k.Errorf("%q is in the way, want %q", held.Name, waiter.Name)
		}
		k.b.wantGranted(waiter)
		k.b.mustRelease(waiter)
		k.a.wantAllGranted(claims)
	})

	s.test("ARefusedCallStillPassesOnExpiredNames", func(k *kit) {
		var signals *listener
		if s.canSignal {
			signals = k.b.listen()
		}
		var cases [2][]driver.Claim
		var waiters [2]driver.Claim
		var watches [2]*watchCall
		for at := range cases {
			cases[at] = k.newClaims(k.mutex, k.mutex)
			waiters[at] = k.mutex(named(cases[at][at].Name), queue(long))
			if s.canWatch {
				watches[at] = k.watch(waiters[at].Name)
			}
		}
		for at := range cases {
			k.b.wantGranted(k.mutex(named(waiters[at].Name), ttl(k.unit)))
			k.b.wantPlace(waiters[at], 1)
		}
		for at := range cases {
			if s.canWatch {
				watches[at].discardCalls()
			}
		}
		k.advancePast(k.unit)
		for at, waiter := range waiters {
			held, e := k.a.wantNoneGranted(cases[at]), k.b.entry(waiter.Name)
			if held.Name != waiter.Name || held.Fence != e.Fence || held.Holders != 1 || held.Holder.Fence != k.onlyHolder(e.Holders).Fence {
				k.Errorf("%q is in the way, the fence %d, held by %+v; Inspect shows %+v", held.Name, held.Fence, held.Holder, e)
			}
			if s.canWatch {
				watches[at].wantReport("a grant by a refused AcquireAll")
			}
			if s.canSignal {
				if sig := signals.wantSignal(driver.SignalGranted, waiter); sig.Fence != held.Fence {
					k.Errorf("the signal has the fence %d, the HeldError %d", sig.Fence, held.Fence)
				}
			}
			if g := k.b.wantGranted(waiter); g.Fence != held.Fence {
				k.Errorf("the waiter gets the fence %d, the HeldError has %d", g.Fence, held.Fence)
			}
		}
	})

	s.test("ValuesAreWrittenWithAllOrWithNone", func(k *kit) {
		claims := k.newClaims(k.mutex, k.mutex)
		value("one")(&claims[0])
		risingValue("5")(&claims[1])
		grants := k.a.wantAllGranted(claims)
		k.b.wantValueOf(claims[0].Name, "one", grants[0].Fence)
		k.b.wantValueOf(claims[1].Name, "5", grants[1].Fence)
		for _, c := range claims {
			k.a.mustRelease(c)
		}
		again := slices.Clone(claims)
		for i := range again {
			again[i].Token = driver.NewToken()
		}
		again[0].Value = []byte("two")
		_, err := k.a.acquireAll(k.ctx, again)
		refused, ok := errors.AsType[*driver.ValueNotBelowError](err)
		if !ok || refused.Name != claims[1].Name || string(refused.Value) != "5" {
			k.Fatalf("AcquireAll: %v; want a *driver.ValueNotBelowError of %q", err, claims[1].Name)
		}
		k.b.wantValueOf(claims[0].Name, "one", grants[0].Fence)
		k.wantFree(claims[0].Name)
		k.wantFree(claims[1].Name)
	})

	s.test("TheSameTokensAgainAreTheSameGrants", func(k *kit) {
		claims := k.newClaims(k.mutex, k.reader, k.mutex)
		first := k.a.wantAllGranted(claims)
		for i, g := range k.b.wantAllGranted(claims) {
			if g.Fence != first[i].Fence {
				k.Errorf("the repeat got the fence %d, the first %d", g.Fence, first[i].Fence)
			}
		}
		k.a.mustRelease(claims[0])
		again := k.a.wantAllGranted(claims)
		if again[0].Fence <= first[0].Fence || again[1].Fence != first[1].Fence {
			k.Errorf("the fences %+v after %+v; want a new fence only for the released lease", again, first)
		}
	})

	s.test("TheyAreLeasesLikeAnyOther", func(k *kit) {
		claims := k.newClaims(k.mutex, k.mutex)
		for i := range claims {
			claims[i].TTL, claims[i].LockDelay = k.unit, k.unit
		}
		k.a.wantAllGranted(claims)
		k.advancePast(k.unit)
		for _, c := range claims {
			k.a.wantLost(c)
			k.b.wantHeld(k.mutex(named(c.Name))) // because of its lock-delay
		}
		k.advancePast(k.unit)
		for _, c := range claims {
			k.b.wantGranted(k.mutex(named(c.Name)))
		}
	})

	if !s.NoNetwork {
		s.test("LateClaimsChangeNothing", func(k *kit) {
			slow := k.openSlow()
			for _, w := range k.lateCtxEnds() {
				claims := k.newClaims(k.mutex, k.mutex)
				letArrive := slow.delayRequests()
				k.wantPromptReturn(w, slow.newCall("AcquireAll", func(ctx context.Context) error {
					_, err := slow.acquireAll(ctx, claims)
					return err
				}))
				k.advancePast(2 * k.shortTimeout())
				letArrive()
				k.awaitArrival()
				for _, c := range claims {
					k.wantFree(c.Name)
				}
			}
		})
	}

	s.test("InvalidClaimsAreRefused", func(k *kit) {
		good := k.newClaims(k.mutex, k.mutex)
		for what, bad := range map[string][]driver.Claim{
			"nothing":        nil,
			"a name twice":   {good[0], k.mutex(named(good[0].Name))},
			"a token twice":  {good[0], func() driver.Claim { c := good[1]; c.Token = good[0].Token; return c }()},
			"one that waits": {good[0], k.mutex(named(good[1].Name), queue(long))},
			"a forced one":   {good[0], k.mutex(named(good[1].Name), force)},
			"a bad claim":    {good[0], k.mutex(named(good[1].Name), ttl(0))},
			"too many":       k.newClaims(slices.Repeat([]func(...option) driver.Claim{k.mutex}, driver.MaxAll+1)...),
		} {
			_, err := k.a.acquireAll(k.ctx, bad)
			k.wantInvalid(what, err)
		}
		k.wantFree(good[0].Name)
		many := k.newClaims(slices.Repeat([]func(...option) driver.Claim{k.mutex}, driver.MaxAll)...)
		k.a.wantAllGranted(many)
		for _, c := range many {
			k.b.mustRelease(c)
		}
	})

	s.test("ClientsThatWantTheSameNamesInAnyOrderHoldThemOneAtATime", func(k *kit) {
		section := section{limit: driver.Unlimited}
		var turn atomic.Int64
		k.runWorkers(8, 10, func(w *worker) error {
			claims := k.newClaimsBelow("shared", k.mutex, k.mutex, k.mutex)
			if turn.Add(1)%2 == 0 {
				slices.Reverse(claims)
			}
			return w.enterAll(&section, claims)
		})
		section.check(k, 80)
	})

	s.test("AfterCloseItIsErrClosed", func(k *kit) {
		d := k.open()
		k.mustClose(d)
		if _, err := d.acquireAll(k.ctx, k.newClaims(k.mutex, k.mutex)); !errors.Is(err, driver.ErrClosed) {
			k.Errorf("AcquireAll: %v; want ErrClosed", err)
		}
	})
}

// newClaims makes claims of new names, one of each kind.
func (k *kit) newClaims(kinds ...func(...option) driver.Claim) []driver.Claim {
	return k.newClaimsBelow(fmt.Sprint(serial.Add(1)), kinds...)
}

// newClaimsBelow makes claims of names below a path.
func (k *kit) newClaimsBelow(path string, kinds ...func(...option) driver.Claim) []driver.Claim {
	claims := make([]driver.Claim, len(kinds))
	for i, kind := range kinds {
		claims[i] = kind(named(fmt.Sprintf("%s/%s/%d", k.name, path, i)))
	}
	return claims
}

func (d *client) acquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	return d.Driver.(driver.AllAcquirer).AcquireAll(ctx, claims)
}

// wantAllGranted requires that all claims are granted.
func (d *client) wantAllGranted(claims []driver.Claim) []driver.Grant {
	d.k.Helper()
	grants, err := d.acquireAll(d.k.ctx, claims)
	if err != nil || len(grants) != len(claims) {
		d.k.Fatalf("AcquireAll = %+v, %v; want %d grants", grants, err, len(claims))
	}
	return grants
}

// wantNoneGranted requires that AcquireAll returns a HeldError.
func (d *client) wantNoneGranted(claims []driver.Claim) *driver.HeldError {
	d.k.Helper()
	grants, err := d.acquireAll(d.k.ctx, claims)
	held, ok := errors.AsType[*driver.HeldError](err)
	if !ok || grants != nil {
		d.k.Fatalf("AcquireAll = %+v, %v; want a *driver.HeldError", grants, err)
	}
	return held
}

// enterAll repeats AcquireAll until it is granted, visits the section, and releases.
func (w *worker) enterAll(s *section, claims []driver.Claim) error {
	for {
		grants, err := w.d.acquireAll(w.k.ctx, claims)
		if err == nil {
			s.visit(claims[0], grants[0])
			for _, c := range claims {
				err = errors.Join(err, w.d.Release(w.k.ctx, lease(c)))
			}
			return err
		}
		if !errors.Is(err, driver.ErrHeld) {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-w.k.ctx.Done():
			return context.Cause(w.k.ctx)
		}
	}
}
