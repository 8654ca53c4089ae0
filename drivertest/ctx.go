package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testCtx tests that the ctx of a call bounds the call, and nothing after it.
func testCtx(s *suite) {
	s.test("AnEndedCtxReturnsItsErrorAndChangesNothing", func(k *kit) {
		cancelled, cancel := context.WithCancel(k.ctx)
		cancel()
		tooLate, cancel := context.WithDeadline(k.ctx, time.Now().Add(-time.Second))
		defer cancel()

		held, known := k.mutex(named(k.name+"/held")), k.mutex(named(k.name+"/known"))
		g := k.a.wantGranted(held)
		k.a.wantGranted(known)
		k.a.mustRelease(known)
		for ctx, want := range map[context.Context]error{cancelled: context.Canceled, tooLate: context.DeadlineExceeded} {
			wantErr := func(what string, err error) {
				k.Helper()
				if !errors.Is(err, want) || errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNoSuchLease) {
					k.Errorf("%s: %v; want %v", what, err, want)
				}
			}
			_, err := k.a.Acquire(ctx, k.mutex())
			wantErr("Acquire of a free name", err)
			_, err = k.a.Acquire(ctx, k.mutex(named(known.Name)))
			wantErr("Acquire of a used name", err)
			_, err = k.b.Acquire(ctx, k.mutex(named(held.Name), queue(long)))
			wantErr("Acquire of a held name", err)
			_, err = k.b.Acquire(ctx, k.mutex(named(held.Name), force))
			wantErr("forced Acquire", err)
			_, err = k.a.Renew(ctx, []driver.LeaseRef{lease(held), {Name: held.Name, Token: held.Token, TTL: 9 * long}})
			wantErr("Renew", err)
			wantErr("Release", k.a.Release(ctx, lease(held)))
			wantErr("Release of nothing", k.a.Release(ctx, lease(k.mutex())))
			bounded := lease(held)
			bounded.HasEnd = true
			wantErr("Release with an end", k.a.Release(ctx, bounded))
			_, err = k.a.Inspect(ctx, k.name)
			wantErr("Inspect", err)
			if s.canBreak {
				wantErr("Break", k.b.Driver.(driver.LeaseBreaker).Break(ctx, held.Name, g.Fence, long, driver.Owner{}))
			}
			if s.canList {
				wantErr("List", k.listErr(ctx, k.b))
			}
		}

		k.b.wantHoldersWaiters(0, 0)
		e := k.b.entry(held.Name)
		if len(e.Holders) != 1 || len(e.Waiters) != 0 || e.ClosedFor != 0 || e.Holders[0].Fence != g.Fence || e.Holders[0].ExpiresIn > 2*long {
			k.Errorf("%+v; want it unchanged", e)
		}
		k.a.mustRenew(held)
		k.b.wantGranted(k.mutex())
	})

	s.test("ItsEndAfterTheCallDoesNotEndTheLease", func(k *kit) {
		ctx, cancel := context.WithTimeout(k.ctx, time.Minute) // shorter than the TTL
		c := k.mutex(ttl(2 * long))
		if _, err := k.a.Acquire(ctx, c); err != nil {
			k.Fatal(err)
		}
		cancel()
		for range 15 { // the end of a ctx may start a request in the background
			time.Sleep(time.Millisecond)
			k.a.mustRenew(c)
		}
		k.b.wantHeld(k.mutex())
	})

	s.test("ItsEndAfterTheCallDoesNotLoseThePlace", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(holder)
		ctx, cancel := context.WithCancel(k.ctx)
		var held *driver.HeldError
		if _, err := k.b.Acquire(ctx, waiter); !errors.As(err, &held) {
			k.Fatal(err)
		}
		cancel()
		for range 15 {
			time.Sleep(time.Millisecond)
			k.a.wantHoldersWaiters(1, 1)
		}
		k.a.mustRelease(holder)
		k.a.wantHoldersWaiters(1, 0)
		k.b.wantGranted(waiter)
	})

	s.test("ItsEndDuringTheCallLeavesAnOutcomeThatReleaseSettles", func(k *kit) {
		var unknown []driver.Claim
		for i := range 20 {
			c := k.mutex(named(k.nthName(i)), queue(long))
			ctx, cancel := context.WithTimeout(k.ctx, k.shortTimeout())
			done := make(chan error, 1)
			go func() {
				_, err := k.a.Acquire(ctx, c)
				done <- err
			}()
			cancel()
			err := <-done
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, driver.ErrUnavailable) {
				k.Fatalf("Acquire: %v; want it granted, or the ctx's error", err)
			}
			if k.releaseUnknown(k.b, c); err != nil && !s.NoNetwork {
				unknown = append(unknown, c) // an attempt may arrive after that release, until its end
			} else {
				k.wantFree(c.Name)
			}
		}
		if len(unknown) == 0 {
			return
		}
		k.advancePast(k.shortTimeout())
		for _, c := range unknown {
			k.releaseUnknown(k.b, c)
			k.wantFree(c.Name)
		}
	})
}
