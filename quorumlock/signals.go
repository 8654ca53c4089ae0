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

// signaled hears a node. "Look" and "lost" are passed on: the client asks, or checks, and
// then a majority answers. "Granted" is passed on as such when a majority has said so,
// and has agreed on one fence.
func (d *Driver) signaled(i int, s driver.Signal) {
	if s.Kind != driver.SignalGranted {
		if s.Kind == driver.SignalLost {
			if p := d.placed.find(s.Token); p != nil {
				p.givesBack([]int{i})
			}
		}
		d.heard.Notify(s)
		return
	}
	if p := d.placed.find(s.Token); p != nil { // else a majority has granted it already
		p.hear(i, s)
		p.weigh()
	}
}

// hear notes that a node says it has granted the claim.
func (p *place) hear(i int, s driver.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Fence >= p.nodes[i].heard.Fence {
		p.nodes[i].heard = driver.Grant{Fence: s.Fence, Fences: s.Fences}
	}
}

// weigh looks at what the signals and answers so far amount to, and says it. While
// somebody has the turn at the place it does nothing: done comes back to it.
func (p *place) weigh() {
	p.mu.Lock()
	c := p.claim
	s, votes := p.outcomeLocked()
	if s == outcomeGranted {
		p.busy = make(chan struct{})
	}
	p.mu.Unlock()
	switch s {
	case outcomeLook:
		p.d.heard.Notify(driver.Signal{Kind: driver.SignalLook, Token: c.Token})
	case outcomeGranted:
		p.pass(c, votes)
	}
}

const (
	outcomeOpen = iota
	outcomeLook
	outcomeGranted
)

// outcomeLocked is what weigh does.
//
// Nodes pass a name on when they hear of its release, each with its own time for a fence.
// As soon as a majority has, they could be made to agree; but one that comes a moment
// later with a higher fence than theirs would be left with it, and would have a claim
// that is asked for again disagree with itself. So all nodes that have given the claim a
// place are waited for, a moment long.
func (p *place) outcomeLocked() (int, ballots) {
	d := p.d
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
	n := succeeded(votes)
	grant, agreed := d.agreed(votes)
	switch {
	case !news, agreed && p.said >= grant.Fence: // that the caller knows
		return outcomeOpen, nil
	case n < d.majority && p.waited, n >= d.majority && p.claim.TTL < p.claim.QueueTTL:
		// With a TTL that is shorter than the place, a grant that was an answer may be
		// over before the listener thinks so.
		p.quietLocked()
		return outcomeLook, nil
	case n < d.majority:
		p.awaitLocked(false, moment)
	case agreed, n == asked, p.waited && p.patient:
		p.quietLocked()
		return outcomeGranted, votes
	default:
		p.awaitLocked(true, max(moment, d.grace))
	}
	return outcomeOpen, nil
}

// awaitLocked comes back to the place when no more signals were heard for some time.
func (p *place) awaitLocked(patient bool, wait time.Duration) {
	if p.timer != nil && p.patient == patient {
		return
	}
	p.quietLocked()
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		p.mu.Lock()
		mine := p.timer == t // it may have been stopped too late
		p.waited = p.waited || mine
		p.mu.Unlock()
		if mine {
			p.weigh()
		}
	})
	p.timer, p.patient = t, patient
}

// pass says that a majority has granted, when it has agreed on one fence. Permits are
// counted again then, as they are when they ask. It ends the turn at the place that weigh
// has taken.
func (p *place) pass(c driver.Claim, votes ballots) {
	d := p.d
	grant, agreed := d.agreed(votes)
	if agreed && !counts(c) && c.Value == nil {
		p.passed(votes, grant.Fence)
		d.heard.Notify(driver.Signal{Kind: driver.SignalGranted, Token: c.Token, Fence: grant.Fence, Fences: grant.Fences})
		p.done()
		return
	}
	if d.begin(d.life) != nil {
		p.passed(nil, 0) // or done would come back here, until Close has ended all places
		p.done()
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

// passed notes what the nodes have agreed on; nil is that they have not, and then signals
// count again when the claim was asked for again. It reports whether anybody still waits.
func (p *place) passed(votes ballots, fence uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if votes != nil && !p.gone {
		p.said = max(p.said, fence)
		c := p.claim
		c.Owner, c.Ticket = p.tag.on(c.Owner), p.tag.ticket
		p.d.held.granted(c, fence, p.queued.Add(surely(min(c.TTL, c.QueueTTL))))
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
