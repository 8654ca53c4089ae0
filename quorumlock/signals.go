package quorumlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Listen implements driver.Signaler.
func (d *quorum) Listen(f func(driver.Signal)) (stop func()) { return d.listeners.Listen(f) }

// signalWait is the time for which the driver waits, after one node's signal of a grant,
// for the other nodes' signals.
const signalWait = 3 * time.Millisecond

// signaled handles a signal of a node. It passes SignalRetry and SignalLost on: the
// client then sends its claim or a renewal, and a majority answers. It passes a grant on
// when a majority has answered or signaled it, and has agreed on one fence.
func (d *quorum) signaled(i int, s driver.Signal) {
	p := d.places.find(s.Token) // nil if the claim was already granted, or given up
	switch {
	case s.Kind == driver.SignalLost && p != nil:
		p.forgetGrants([]int{i})
	case s.Kind == driver.SignalGranted && p != nil:
		p.recordGrantSignal(i, s)
		p.checkSignals()
	}
	if s.Kind != driver.SignalGranted {
		d.listeners.Notify(s)
	}
}

// recordGrantSignal records a node's signal that it has granted the claim.
func (p *place) recordGrantSignal(i int, s driver.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Fence >= p.nodes[i].signaled.Fence {
		p.nodes[i].signaled = driver.Grant{Fence: s.Fence, Fences: s.Fences}
	}
}

// checkSignals counts the signals and answers so far, and notifies the listeners if they
// have a result. It does nothing during a turn at the place: endTurn calls it again.
func (p *place) checkSignals() {
	p.mu.Lock()
	c := p.claim
	shouldRetry, votes := p.outcomeLocked()
	if votes != nil {
		p.turnEnd = make(chan struct{})
	}
	p.mu.Unlock()
	switch {
	case shouldRetry:
		p.d.listeners.Notify(driver.Signal{Kind: driver.SignalRetry, Token: c.Token})
	case votes != nil:
		p.signalGrant(c, votes)
	}
}

// outcomeLocked returns the result of the signals and answers so far: whether the client
// should send its claim again, or the votes of a majority that granted it, or neither.
//
// Each node grants to the next waiter when it gets the release, with its own time as the
// fence. The driver could make the nodes agree as soon as a majority has granted. But a
// later node with a higher fence would keep that fence, and would disagree in a repeated
// claim. So outcomeLocked waits a moment for all nodes that have queued the claim.
func (p *place) outcomeLocked() (shouldRetry bool, granted grantVotes) {
	d := p.d
	if p.closed || p.turnEnd != nil {
		return false, nil
	}
	votes := unansweredVotes[driver.Grant](len(p.nodes))
	answers, hasSignal := 0, false
	for i := range p.nodes {
		s := &p.nodes[i]
		if s.answered {
			answers++
		}
		if g, ok := s.granted(); ok {
			votes[i] = vote[driver.Grant]{value: g}
			hasSignal = hasSignal || s.grant.Fences == 0
		}
	}
	n := succeeded(votes)
	grant, agreed := d.agreed(votes)
	switch {
	case !hasSignal, agreed && p.signalledFence >= grant.Fence: // the listeners know that fence
		return false, nil
	case n < d.majority:
		shouldRetry = p.hasWaitedLocked(false, signalWait)
	case p.claim.TTL < p.claim.QueueTTL:
		// A node that granted in its answer keeps the lease for the TTL only, but a
		// listener would rely on a signal of a grant for the QueueTTL.
		shouldRetry = true
	case agreed, n == answers, p.hasWaitedLocked(true, max(signalWait, d.grace)):
		granted = votes
	}
	if shouldRetry || granted != nil {
		p.waitsSince = time.Time{}
	}
	return shouldRetry, granted
}

// hasWaitedLocked reports whether the place has waited for other nodes' signals for this
// time. If the place does not wait yet, hasWaitedLocked begins the wait, after which
// checkSignals is called again.
func (p *place) hasWaitedLocked(forLastNodes bool, wait time.Duration) bool {
	if p.waitsSince.IsZero() || p.waitsForLastNodes != forLastNodes {
		p.waitsSince, p.waitsForLastNodes = time.Now(), forLastNodes
		time.AfterFunc(wait, p.checkSignals)
	}
	return time.Since(p.waitsSince) >= wait
}

// signalGrant makes a majority that has granted agree on one fence, and signals the
// grant. It also counts permits and writes the value, as an attempt does. It ends the
// turn that checkSignals has begun.
func (p *place) signalGrant(c driver.Claim, votes grantVotes) {
	a := &attempt{d: p.d, claim: c, place: p, lateGrants: map[int]bool{}}
	if grant, ok := a.concluded(votes); ok {
		a.signalResult(p.d.requestsCtx, votes, grant, nil)
		return
	}
	err := a.settleInBackground(p.d.requestsCtx, votes, func(ctx context.Context, grant driver.Grant, err error) {
		a.signalResult(ctx, votes, grant, err)
	})
	if err != nil {
		p.recordAgreement(nil, 0) // otherwise endTurn would call signalGrant again and again
		p.endTurn()
	}
}

// recordAgreement records that the nodes have agreed on a fence. Nil votes mean that they
// have not; then a node counts again when it answers the next attempt. recordAgreement
// reports whether the claim still waits.
func (p *place) recordAgreement(votes grantVotes, fence uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if votes != nil && !p.closed {
		p.signalledFence = max(p.signalledFence, fence)
		p.d.holdings.recordGrant(p.claim, votes, fence, p.queuedAt.Add(reliableTTL(min(p.claim.TTL, p.claim.QueueTTL))))
	}
	for i := range p.nodes {
		switch s := &p.nodes[i]; {
		case votes == nil:
			s.answered = false
		case votes[i].err == nil:
			s.grant = votes[i].value
		}
	}
	return !p.closed
}
