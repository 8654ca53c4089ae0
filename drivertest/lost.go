package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testLostAnswers tests calls whose answers are lost after the server has handled the
// request. A call must return an error that leaves the outcome open, or the result of the
// first request.
func testLostAnswers(s *suite) {
	const advice = "whether the client library, or the driver, repeats a request after its answer was lost: the repeat finds the effect of " +
		"the first request. Turn that off and return the error, or let the server recognize the repeat"

	for name, mode := range map[string]option{
		"AClaimWhoseAnswerIsLostIsGrantedOnce": func(*driver.Claim) {},
		"AForceWhoseAnswerIsLostIsGrantedOnce": force,
	} {
		s.testWithAdvice(advice, name, func(k *kit) {
			k.withLostAnswers(func(far *slowClient, ctx context.Context, name string) {
				c := k.mutex(named(name), mode)
				if c.Force {
					k.b.wantGranted(k.mutex(named(name)))
				}
				g, err := far.Acquire(ctx, c)
				k.wantUnknownOutcome("Acquire", err, nil)
				asker := k.b
				if err != nil && s.IsQuorum {
					// Only the client that made the failed try waits for the releases of
					// it.
					asker, _ = far.client, far.network.loseAnswer(0)
				}
				again := asker.wantGranted(c)
				if err == nil && again.Fence != g.Fence {
					k.Errorf("granted with the fence %d, and a repeat returns %d", g.Fence, again.Fence)
				}
				k.wantOneHolder(name, again.Fence)
			})
		})
	}

	s.testWithAdvice(advice, "AClaimToQueueWhoseAnswerIsLostHasOnePlace", func(k *kit) {
		k.withLostAnswers(func(far *slowClient, ctx context.Context, name string) {
			k.b.wantGranted(k.mutex(named(name)))
			c := k.mutex(named(name), queue(long))
			_, err := far.Acquire(ctx, c)
			k.wantUnknownOutcome("Acquire", err, driver.ErrHeld)
			if held, ok := errors.AsType[*driver.HeldError](err); ok && held.Position != 1 {
				k.Errorf("place %d in the queue, want 1", held.Position)
			}
			k.b.wantPlace(c, 1)
			if e := k.b.entry(name); len(e.Waiters) != 1 {
				k.Errorf("%+v; want one waiter", e)
			}
		})
	})

	s.testWithAdvice(advice, "ARenewalWhoseAnswerIsLostIsNoLoss", func(k *kit) {
		k.withLostAnswers(func(far *slowClient, ctx context.Context, name string) {
			c := k.mutex(named(name))
			g := k.b.wantGranted(c)
			l := lease(c)
			l.Value = []byte(name)
			answers, err := far.Renew(ctx, []driver.LeaseRef{l})
			if err == nil && len(answers) == 1 {
				err = answers[0]
			}
			k.wantUnknownOutcome("Renew", err, nil)
			k.b.mustRenew(c)
			k.wantOneHolder(name, g.Fence)
		})
	})

	s.testWithAdvice(advice, "AReleaseWhoseAnswerIsLostIsNoLoss", func(k *kit) {
		k.withLostAnswers(func(far *slowClient, ctx context.Context, name string) {
			held, next := k.mutex(named(name)), k.mutex(named(name), queue(long))
			k.b.wantGranted(held)
			k.b.wantPlace(next, 1)
			k.wantUnknownOutcome("Release", far.Release(ctx, lease(held)), nil)
			k.releaseUnknown(k.b, held)
			k.wantOneHolder(name, k.b.wantGranted(next).Fence)
		})
	})

	if s.canBreak {
		s.testWithAdvice(advice, "ABreakWhoseAnswerIsLostIsNotRefused", func(k *kit) {
			k.withLostAnswers(func(far *slowClient, ctx context.Context, name string) {
				c := k.mutex(named(name))
				g := k.b.wantGranted(c)
				k.wantUnknownOutcome("Break", far.Driver.(driver.LeaseBreaker).Break(ctx, name, g.Fence, 0, driver.Owner{Client: "op"}), nil)
				// The break may take effect at once, later, or not at all.
				if err := k.b.renew(c, c.TTL); errors.Is(err, driver.ErrNoSuchLease) {
					k.b.wantGranted(k.mutex(named(name)))
				} else if err != nil {
					k.Errorf("Renew: %v; want it held, or broken", err)
				}
			})
		})
	}
}

// withLostAnswers calls f for some names. For the first name the network loses the
// server's first answer to far, for the next name the second, and so on for as many
// answers as a call has, up to six.
func (k *kit) withLostAnswers(f func(far *slowClient, ctx context.Context, name string)) {
	k.Helper()
	far := k.openSlow()
	defer func() { k.ownWaits.Add(int64(time.Since(k.began))) }() // waiting for lost answers takes long
	for nth := 1; nth <= 6; nth++ {
		name := k.nthName(nth)
		for pause := time.Millisecond; ; pause *= 2 { // until far has a connection, and knows the name
			if _, err := far.Inspect(k.ctx, name); err == nil {
				break
			} else if k.ctx.Err() != nil {
				k.Fatalf("Inspect after a connection was lost: %v; want it made again", err)
			}
			time.Sleep(pause)
		}
		ctx, cancel := context.WithTimeout(k.ctx, time.Second)
		wasLost := far.network.loseAnswer(nth)
		f(far, ctx, name)
		cancel()
		if !wasLost() {
			return
		}
	}
}

// wantUnknownOutcome requires nil, the usual error, or one that leaves the outcome open.
func (k *kit) wantUnknownOutcome(what string, err, usual error) {
	k.Helper()
	if err == nil || usual != nil && errors.Is(err, usual) {
		return
	}
	for _, is := range []error{driver.ErrHeld, driver.ErrNoSuchLease, driver.ErrInvalid} {
		if errors.Is(err, is) {
			k.Errorf("%s, whose answer was lost: %v; want %v, or an error that leaves the outcome open", what, err, usual)
		}
	}
}
