package engine

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// A Poller looks, in one goroutine, for what no server pushes: at the pace of the claims
// that wait, and now and then for what was lost, while the client holds anything. Without
// claims it sleeps. A look that fails is made again, each time after twice the pause.
type Poller struct {
	Claims  *Claims
	Pace    Pace
	Losses  time.Duration   // between looks of a client that only holds
	LookNow <-chan struct{} // makes a look due, even without claims; may be nil

	// Look looks once, at the claims that wait and at what was lost. No caller gets its
	// error: a waiter asks by itself now and then, and hears what is wrong.
	Look func(ctx context.Context, waiting []Claim) error
}

// A Pace is how long to pause after a look for a claim that waits, by how long nothing
// has happened to it, and how many wait ahead of it.
type Pace func(waited time.Duration, ahead int) time.Duration

// Growing is a pace that grows: a part of the time since something last happened, so that
// a hand-over is late by a small part of what it took, and a long wait costs next to
// nothing. Claims further behind in a queue need not look as often as its head.
func Growing(quick, slow time.Duration, part int) Pace {
	return func(waited time.Duration, ahead int) time.Duration {
		d := max(waited/time.Duration(part), quick*time.Duration(1+ahead))
		if d >= slow {
			return slow + backoff.Below(slow/8)
		}
		return d - backoff.Below(d/4)
	}
}

const (
	lookTimeout    = 5 * time.Second
	lookAgainFirst = 10 * time.Millisecond // after a look that failed
	lookAgainMost  = time.Second           // it may have dialled a server that is down
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
		waiting, some := p.Claims.due(looked)
		if !some && !asked {
			continue
		}
		if err := p.lookOnce(ctx, waiting); err == nil {
			failures, rests = 0, time.Time{}
			continue
		}
		rests = time.Now().Add(backoff.Around(backoff.Doubled(lookAgainFirst, failures, lookAgainMost)))
		failures++
	}
}

func (p *Poller) lookOnce(ctx context.Context, waiting []Claim) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return p.Look(ctx, waiting)
}
