package pawl

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/trust"
)

// A step is one attempt at several claims. One step of the backend grants all of them or
// none. The attempt never waits.
type step struct {
	c          *core
	claims     []*claim
	mayHold    bool // the backend may have granted the claims, so dropUngranted releases them
	leaseCount int  // how many of the claims have a lease
}

// acquireTogether makes one attempt at all claims in one step of the backend, and appends
// the leases to all. If it fails, at is the index of the claim that was refused. The
// error is errors.ErrUnsupported if the backend cannot make the step.
func (c *core) acquireTogether(ctx context.Context, claims []*claim, all *[]*Lease) (at int, err error) {
	backend, can := driver.As[driver.AllAcquirer](c.driver)
	switch err := ctx.Err(); {
	case err != nil:
		return 0, err
	case !can && len(claims) > 1:
		return 0, errors.ErrUnsupported
	case !c.claims.enter():
		return 0, ErrClosed
	}
	defer c.claims.leave()
	if len(claims) == 1 {
		lease, err := c.acquire(ctx, claims[0], trying)
		if err == nil {
			*all = append(*all, lease)
		}
		return 0, err
	}
	s := &step{c: c, claims: claims}
	defer s.dropUngranted()
	if err = s.run(ctx, backend, all); err != nil {
		at = s.refusedIndex(err)
	}
	return at, err
}

// dropUngranted removes the claims that have no lease from the lists of this process, as
// attempts.dropUngranted does. It releases those that the backend may have granted.
func (s *step) dropUngranted() {
	for _, cl := range s.claims[s.leaseCount:] {
		s.c.inboxes.Remove(cl.Token, &cl.inbox)
		if s.mayHold {
			s.c.releaseUnknown(cl)
		}
	}
}

func (s *step) run(ctx context.Context, backend driver.AllAcquirer, all *[]*Lease) error {
	for _, cl := range s.claims {
		if err := s.c.queues.CheckTry(&cl.Claim); err != nil {
			return err
		}
	}
	sent := s.c.now()
	grants, err := s.send(ctx, backend, sent)
	switch {
	case err == nil && ctxErr(ctx) != nil:
		return ctxErr(ctx) // no caller waits for the leases any more
	case err == nil:
		return s.beginLeases(sent, s.c.now(), grants, all)
	case isAnswer(err), errors.Is(err, errors.ErrUnsupported), errors.Is(err, ErrClosed):
		s.mayHold = false
		return err
	case ctxErr(ctx) != nil:
		return gaveUp(ctx, s.claims[0].Name, nil)
	}
	err = unavailable(s.c.backend, "acquire", s.claims[0].Name, err)
	s.c.observer.reportFailed(Event{Ctx: ctx, Name: s.claims[0].Name}, "acquire", len(s.claims), err)
	return err
}

// send makes the attempt, with the shortest time limit of the claims.
func (s *step) send(ctx context.Context, backend driver.AllAcquirer, sent clock.Reading) ([]driver.Grant, error) {
	first, shortestTTL := s.claims[0], s.claims[0].TTL
	for _, cl := range s.claims {
		shortestTTL = min(shortestTTL, cl.TTL)
	}
	bounded := s.c.settings.requestContext(ctx, &first.request, shortestTTL, sent.Mono)
	defer bounded.Cancel()
	end := bounded.Ends()
	claims := make([]driver.Claim, len(s.claims))
	for i, cl := range s.claims {
		s.c.inboxes.Add(cl.Token, &cl.inbox)
		cl.lateAttemptEnd = end.Sub(s.c.epoch)
		claims[i] = cl.Claim
	}
	s.mayHold = true
	grants, err := backend.AcquireAll(bounded, claims)
	if isAnswer(err) {
		for _, cl := range s.claims {
			cl.lateAttemptEnd = 0
		}
	}
	return grants, err
}

// beginLeases makes the leases, if all of them have enough time left.
func (s *step) beginLeases(sent, now clock.Reading, grants []driver.Grant, all *[]*Lease) error {
	terms := make([]trust.Term, len(s.claims))
	for i, cl := range s.claims {
		if terms[i] = trust.NewTerm(sent, grants[i].TTL, cl.marginOf(cl.TTL)); !terms[i].Fresh(now) {
			return unavailable(s.c.backend, "acquire", cl.Name, errTooLate)
		}
	}
	for i, cl := range s.claims {
		h := newHold(s.c, cl, sent, terms[i], grants[i].Fence, grants[i].Fences)
		if !s.c.startRenewing(h, now) {
			return ErrClosed // Close does not know this hold, nor the next ones
		}
		s.leaseCount++
		*all = append(*all, s.c.beginLease(nil, h, now))
	}
	s.mayHold = false
	return nil
}

// refusedIndex returns the index of the claim that err names, or 0 if err concerns all
// claims.
func (s *step) refusedIndex(err error) int {
	name := ""
	if held, ok := errors.AsType[*HeldError](err); ok {
		name = held.Name
	} else if refused, ok := errors.AsType[*ValueNotBelowError](err); ok {
		name = refused.Name
	}
	return max(slices.IndexFunc(s.claims, func(cl *claim) bool { return cl.Name == name }), 0)
}
