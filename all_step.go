package pawl

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/trust"
)

// A step is one attempt at several claims, all granted or none, in one step of the
// backend. It never waits. A caller that waits acquires one by one after a step that
// failed.
type step struct {
	c      *core
	claims []*claim
	asking bool // during a call of the driver, or of the Observer
	begun  int  // how many of the claims have a lease
}

// atOnce makes the step, and appends the leases to all. done is false if the caller has
// to acquire one by one: the backend cannot make the step, or a claim of this client
// holds one of the names or waits for it, and the caller may wait as well.
func (c *core) atOnce(ctx context.Context, claims []*claim, all *[]*Lease, m mode) (done bool, err error) {
	backend, can := driver.As[driver.AllAcquirer](c.driver)
	if !can || len(claims) < 2 || len(claims) > driver.MaxAll {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	if !c.claims.enter() {
		return true, ErrClosed
	}
	defer c.claims.leave()

	began := time.Now()
	s := &step{c: c, claims: claims}
	defer s.leave()
	err = s.run(ctx, backend, all)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err != nil:
		if m == waiting && errors.Is(err, ErrHeld) && ended(ctx) != nil {
			err = gaveUp(ctx, s.inTheWay(err).Name, err)
		}
		if m == waiting && ended(ctx) == nil && !s.endsCall(err) {
			return false, nil
		}
		c.observer.refused(s.inTheWay(err), m, time.Since(began), err)
		return true, err
	}
	if c.observer != nil {
		for _, lease := range *all {
			lease.announce(c.born.Add(lease.begun).Sub(began))
		}
	}
	return true, nil
}

// endsCall reports whether this error ends the whole call. After an attempt without an
// answer, the claims may have written a value that would refuse the next attempt, as if
// another client had written it.
func (s *step) endsCall(err error) bool {
	conditional := func(cl *claim) bool { return cl.Above != nil }
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) || permanent(err) ||
		!errors.Is(err, ErrHeld) && slices.ContainsFunc(s.claims, conditional)
}

// leave removes the claims that have no lease from the lists of this process, as
// attempts.leave does.
func (s *step) leave() {
	for _, cl := range s.claims[s.begun:] {
		s.c.inboxes.Remove(cl.Token, &cl.inbox)
		if s.asking {
			s.c.undo(cl)
		}
	}
}

func (s *step) run(ctx context.Context, backend driver.AllAcquirer, all *[]*Lease) error {
	for _, cl := range s.claims {
		if err := s.c.queues.Tried(&cl.Claim); err != nil {
			return err
		}
	}
	sent := s.c.now()
	grants, err := s.ask(ctx, backend, sent)
	switch {
	case answered(err), errors.Is(err, errors.ErrUnsupported), errors.Is(err, ErrClosed):
	case ended(ctx) != nil:
		s.asking = true // so that leave undoes it
		return gaveUp(ctx, s.claims[0].Name, nil)
	default:
		s.asking = true
		err = unavailable(s.c.backend, "acquire", s.claims[0].Name, err)
		s.c.observer.failed(s.claims[0].event(ctx), "acquire", len(s.claims), err)
	}
	if err != nil {
		return err
	}
	s.asking = true // until each has its lease
	if err := ended(ctx); err != nil {
		return err // no caller waits for them any more
	}
	return s.begin(sent, s.c.now(), grants, all)
}

// ask makes the attempt, with the shortest time limit of the claims.
func (s *step) ask(ctx context.Context, backend driver.AllAcquirer, sent clock.Reading) ([]driver.Grant, error) {
	first, least := s.claims[0], s.claims[0].TTL
	for _, cl := range s.claims {
		least = min(least, cl.TTL)
	}
	bounded := s.c.attempt(ctx, &first.request, least, sent.Mono)
	defer bounded.Cancel()
	end := bounded.Ends()
	claims := make([]driver.Claim, len(s.claims))
	for i, cl := range s.claims {
		s.c.inboxes.Add(cl.Token, &cl.inbox)
		cl.lateAttemptEnd = end.Sub(s.c.born)
		claims[i] = cl.Claim
	}
	s.asking = true
	grants, err := backend.AcquireAll(bounded, claims)
	s.asking = false
	if answered(err) {
		for _, cl := range s.claims {
			cl.lateAttemptEnd = 0
		}
	}
	return grants, err
}

// begin makes the leases, if all of them have enough time left.
func (s *step) begin(sent, now clock.Reading, grants []driver.Grant, all *[]*Lease) error {
	terms := make([]trust.Term, len(s.claims))
	for i, cl := range s.claims {
		if terms[i] = trust.NewTerm(sent, grants[i].TTL, cl.marginOf(cl.TTL)); !terms[i].Fresh(now) {
			return unavailable(s.c.backend, "acquire", cl.Name, errTooLate)
		}
	}
	for i, cl := range s.claims {
		h := newHold(s.c, cl, sent, terms[i], grants[i].Fence, grants[i].Fences)
		if !s.c.keep(h, now) {
			return ErrClosed // Close does not know this hold, nor the next ones
		}
		s.begun++
		*all = append(*all, s.c.begin(nil, h, now))
	}
	s.asking = false
	return nil
}

// inTheWay is the claim that an error is about: the first claim if it is about all.
func (s *step) inTheWay(err error) *claim {
	name := ""
	if held, ok := errors.AsType[*HeldError](err); ok {
		name = held.Name
	} else if refused, ok := errors.AsType[*ValueError](err); ok {
		name = refused.Name
	}
	i := slices.IndexFunc(s.claims, func(cl *claim) bool { return cl.Name == name })
	return s.claims[max(i, 0)]
}
