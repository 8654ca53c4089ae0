package engine

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// A Poller looks, in one goroutine, for changes that no server pushes: for the claims
// that wait at their pace, and for lost leases now and then, while the client holds any.
// Without claims it sleeps. After a look that fails the pause doubles.
type Poller struct {
	Claims  *Claims
	Pace    Pace
	Losses  time.Duration   // the time between two looks of a client that holds leases, and waits for none
	LookNow <-chan struct{} // makes a look due, even without claims; may be nil

	// Look looks once, at the claims that wait and for lost leases. No caller gets its
	// error: a waiter sends its claim again now and then, and gets the error itself.
	Look func(ctx context.Context) error
}

// A Pace returns the pause after a look for a waiting claim. waited is the time for which
// nothing has happened on its name, and ahead the number of claims ahead of it.
type Pace func(waited time.Duration, ahead int) time.Duration

// Growing is a pace that grows: it is a part of the time since something last happened.
// So a hand-over is noticed late by a small part of the wait, and a long wait costs next
// to nothing. Claims further behind in a queue look less often than its head: it is not
// their turn next. While nothing happens, the head looks once per `slow`, and others up
// to four times less often.
func Growing(quick, slow time.Duration, part int) Pace {
	return func(waited time.Duration, ahead int) time.Duration {
		most := slow * time.Duration(min(1+ahead, 4))
		d := max(waited/time.Duration(part), quick*time.Duration(1+ahead))
		if d >= most {
			return most + backoff.Below(most/8)
		}
		return d - backoff.Below(d/4)
	}
}

const (
	lookTimeout    = 5 * time.Second
	lookAgainFirst = 10 * time.Millisecond // after a look that failed
	lookAgainMost  = time.Second           // a look may dial a server that is down
)

// Run looks until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	looked, rests := time.Now(), time.Time{}
	for failures := 0; ; {
		next, asked := p.Claims.nextLook(looked, p.Pace, p.Losses), false
		if timer.Stop(); !next.IsZero() {
			timer.Reset(max(time.Until(next), time.Until(rests)))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.Claims.hurry:
			if next.IsZero() {
				looked = time.Now() // there was nothing to see before
			}
			continue
		case <-p.LookNow:
			asked = true
		case <-timer.C:
		}
		looked = time.Now()
		if !p.Claims.some(looked) && !asked {
			continue
		}
		if err := p.lookOnce(ctx); err == nil {
			failures, rests = 0, time.Time{}
			continue
		}
		rests = time.Now().Add(backoff.Around(backoff.Doubled(lookAgainFirst, failures, lookAgainMost)))
		failures++
	}
}

func (p *Poller) lookOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return p.Look(ctx)
}
