package quorumlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) { return d.heard.Listen(f) }

// moment is how long "granted" from one node waits for those of the others.
const moment = 3 * time.Millisecond

// signaled hears a node. "Look" and "lost" are passed on: the client asks, or checks, and then a majority
// answers. "Granted" is passed on as such when a majority has said so, and has agreed on one fence.
func (d *Driver) signaled(i int, s driver.Signal) {
	if s.Kind != driver.SignalGranted {
		if s.Kind == driver.SignalLost {
			if p := d.placed.find(s.Token); p != nil {
				p.mu.Lock()
				p.nodes[i] = standing{}
				p.mu.Unlock()
			}
		}
		d.heard.Notify(s)
		return
	}
	p := d.placed.find(s.Token)
	if p == nil {
		return // it waits no longer: a majority has granted it already
	}
	p.mu.Lock()
	if s.Fence >= p.nodes[i].heard.Fence {
		p.nodes[i].heard = driver.Grant{Fence: s.Fence, Fences: s.Fences}
	}
	p.mu.Unlock()
	d.weigh(p)
}

// weigh looks at what the signals and answers so far amount to, and says it. While somebody has his turn at the place
// it does nothing: done comes back to it.
func (d *Driver) weigh(p *place) {
	p.mu.Lock()
	c := p.claim
	s, votes := d.outcome(p)
	if s == outcomeGranted {
		p.busy = make(chan struct{})
	}
	p.mu.Unlock()
	switch s {
	case outcomeLook:
		d.heard.Notify(driver.Signal{Kind: driver.SignalLook, Token: c.Token})
	case outcomeGranted:
		d.pass(p, c, votes)
	}
}

const (
	outcomeOpen = iota
	outcomeLook
	outcomeGranted
)

// outcome is what weigh does. The caller holds p.mu.
//
// Nodes pass a name on when they hear of its release, each with its own time for a fence. As soon as a majority has,
// they could be made to agree; but one that comes a moment later with a higher fence than theirs would be left
// with it, and would have a claim that is asked for again disagree with itself. So all who have given the claim a place are waited for, a
// moment long.
func (d *Driver) outcome(p *place) (int, ballots) {
	if p.gone || p.busy != nil {
		return outcomeOpen, nil
	}
	votes := make(ballots, len(p.nodes))
	asked, news := 0, false
	for i := range p.nodes {
		s := &p.nodes[i]
		if s.answered {
			asked++
		}
		if g, ok := s.granted(); ok {
			votes[i] = vote[driver.Grant]{in: true, value: g}
			news = news || s.grant.Fences == 0
		}
	}
	n := granted(votes)
	grant, agreed := d.agreed(votes)
	switch {
	case !news, agreed && p.said >= grant.Fence: // that the caller knows
		return outcomeOpen, nil
	case n < d.majority && p.waited, n >= d.majority && p.claim.TTL < p.claim.QueueTTL:
		// With a TTL that is shorter than the place, a grant that was an answer may be over before the listener thinks so.
		p.quiet()
		return outcomeLook, nil
	case n < d.majority:
		d.await(p, false, moment)
	case agreed, n == asked, p.waited && p.patient:
		p.quiet()
		return outcomeGranted, votes
	default:
		d.await(p, true, max(moment, d.grace))
	}
	return outcomeOpen, nil
}

// await comes back to the place when no more signals were heard for some time. The caller holds p.mu.
func (d *Driver) await(p *place, patient bool, wait time.Duration) {
	if p.timer != nil && p.patient == patient {
		return
	}
	p.quiet()
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		p.mu.Lock()
		mine := p.timer == t // it may have been stopped too late
		p.waited = p.waited || mine
		p.mu.Unlock()
		if mine {
			d.weigh(p)
		}
	})
	p.timer, p.patient = t, patient
}

// pass says that a majority has granted, when it has agreed on one fence. Permits are counted again then, as they are
// when they ask. It ends the turn at the place that weigh has taken.
func (d *Driver) pass(p *place, c driver.Claim, votes ballots) {
	grant, agreed := d.agreed(votes)
	if agreed && !counts(c) {
		d.passed(p, votes, grant.Fence)
		d.heard.Notify(driver.Signal{Kind: driver.SignalGranted, Token: c.Token, Fence: grant.Fence, Fences: grant.Fences})
		d.done(p)
		return
	}
	if d.begin(d.life) != nil {
		d.passed(p, nil, 0) // or done would come back here, until Close has ended all places
		d.done(p)
		return
	}
	d.work.Go(func() {
		defer d.work.Done() // of begin
		ctx, cancel := context.WithTimeout(d.life, c.QueueTTL)
		defer cancel()
		a := &attempt{d: d, claim: c, place: p}
		grant, err := a.amount(ctx, votes)
		a.say(ctx, votes, grant, err)
	})
}

// passed notes what the nodes have agreed on; nil is that they have not, and then signals count again when the claim was
// asked for again. It reports whether anybody still waits.
func (d *Driver) passed(p *place, votes ballots, fence uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if votes != nil && !p.gone {
		p.said = max(p.said, fence)
		c := p.claim
		c.Owner, c.Ticket = p.tag.on(c.Owner), p.tag.ticket
		d.held.granted(c, fence, p.queued.Add(surely(min(c.TTL, c.QueueTTL))))
	}
	for i := range p.nodes {
		switch s := &p.nodes[i]; {
		case votes == nil:
			s.answered = false
		case votes[i].in && votes[i].err == nil:
			s.grant = votes[i].value
		}
	}
	return !p.gone
}
