package quorumlock

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A place is the driver's record of a claim that waits: its tag, which is the same in
// each attempt, and its state on each node, so that signals from the nodes can be
// counted.
type place struct {
	d    *quorum
	tag  tag
	name string

	mu             sync.Mutex // protects what follows
	claim          driver.Claim
	busy           chan struct{} // not nil during a turn: an attempt, or an agreement after signals; closed at its end
	closed         bool          // it is no longer in places: the claim was granted, or given up
	touched        time.Time
	queued         time.Time   // when the last attempt that queued began
	nth            int         // of the attempts
	nodes          []standing  // since the last attempt that queued
	known          []bool      // the nodes that have given it a place, or the name
	timer          *time.Timer // ends the wait for other nodes' signals
	timedOut       bool        // the timer has fired
	forLastNodes   bool        // the timer waits for the last few nodes, not for a majority
	signalledFence uint64      // the highest fence in a signal that it was granted
	majorityClaim  [10]byte    // the other claim that had a majority at the last look, while we had a vote
	since          time.Time   // when that was first seen
	looks          int         // since then
}

// A standing is the answer of one node to the last attempt, and its last signal of a
// grant.
type standing struct {
	answered bool         // the node has answered the last attempt
	grant    driver.Grant // if it was granted
	floor    uint64       // if not granted: the last fence that the node had granted to any claim
	heard    driver.Grant // by a signal, which may have come before the answer
}

// granted is the grant that the claim has on the node, as far as we know.
//
// A signal counts only if the node has answered the last attempt. That attempt made the
// place last its QueueTTL, so the grant that replaced the place lasts as long. And it
// counts only if its fence is above all fences that the node had granted by then.
// Otherwise it is an old one, of a grant that we gave back.
func (s *standing) granted() (driver.Grant, bool) {
	switch {
	case !s.answered:
		return driver.Grant{}, false
	case s.grant.Fences > 0:
		return s.grant, true
	case s.heard.Fence > s.floor:
		return s.heard, true
	}
	return driver.Grant{}, false
}

func newPlace(d *quorum, c driver.Claim) *place {
	return &place{
		d: d, tag: newTag(c.Token, d.ticket()), name: c.Name, claim: c, touched: time.Now(),
		nodes: make([]standing, len(d.nodes)), known: make([]bool, len(d.nodes)),
	}
}

// turn finds the place of a claim, or makes one, and takes its turn there. Only one turn
// at a time makes the nodes agree on a fence, because two that know the answers of
// different nodes could agree on two fences. So turn may wait for another attempt of the
// same token, or for an agreement that signals have begun. The turn ends with done.
//
// turn also returns which attempt at the place this is.
func (d *quorum) turn(ctx context.Context, c driver.Claim) (p *place, nth int, err error) {
	for {
		p = d.placed.join(d, c)
		nth, busy := p.begin(c)
		switch {
		case nth > 0:
			return p, nth, nil
		case busy == nil: // the place was given up since join found it
			continue
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// begin takes a turn, and returns which attempt this is; or the channel to wait for.
func (p *place) begin(c driver.Claim) (nth int, busy <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.busy != nil {
		return 0, p.busy
	}
	p.busy = make(chan struct{})
	return p.askLocked(c), nil
}

// done ends the turn, and looks at what came in meanwhile.
func (p *place) done() {
	p.mu.Lock()
	close(p.busy)
	p.busy = nil
	p.mu.Unlock()
	p.checkSignals()
}

// askLocked makes the place ready for another attempt. Earlier answers and signals count
// no more: the node may have lost its data since. Also, our client counts its trust from
// the sending of this attempt, which the node may never get.
//
// A waiter may try, too. A try keeps no place, so it leaves the answers as they are.
func (p *place) askLocked(c driver.Claim) (nth int) {
	p.touched = time.Now()
	if c.Queue {
		p.claim, p.queued = c, p.touched
		clear(p.nodes)
	}
	p.stopTimerLocked()
	p.nth++
	return p.nth
}

// close ends the place.
func (p *place) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *place) closeLocked() {
	p.closed = true
	p.stopTimerLocked()
}

// closeIfStale closes the place if no node can know the claim any more.
func (p *place) closeIfStale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy != nil || time.Since(p.touched) <= 2*max(p.claim.QueueTTL, p.claim.TTL) {
		return false
	}
	p.closeLocked()
	return true
}

func (p *place) stopTimerLocked() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer, p.timedOut, p.forLastNodes = nil, false, false
}

// forgetGrants forgets the grants of these nodes.
func (p *place) forgetGrants(nodes []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range nodes {
		p.nodes[i] = standing{}
	}
}

// outdate marks each earlier signal of a grant as old, in an answer "held". Our client
// may still have such a signal, and would trust it from the sending of this attempt. But
// some nodes of that majority may not have got this attempt, so their grants end sooner,
// or were given back since.
func (p *place) outdate(held *driver.HeldError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held.Fence = max(held.Fence, p.signalledFence)
}

// ticket is the ticket for a node. If the claim has had a place there, it is now, because
// a claim that lost its place joins at the end of the queue.
func (p *place) ticket(i int, now uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[i] {
		return now
	}
	return p.tag.ticket
}

// noteMajorityClaim notes which other claim has a majority, and returns for how long, and
// how often, that has been seen.
func (p *place) noteMajorityClaim(firm [10]byte) (since time.Duration, is bool, nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if firm != p.majorityClaim {
		p.majorityClaim, p.since, p.looks = firm, time.Now(), 0
	}
	p.looks++
	return time.Since(p.since), firm != [10]byte{}, p.looks - 1
}

// noteAnswer notes the answer of a node to an attempt. Answers of one token from one node
// come in order. The answer to an earlier attempt does not count for the last one, which
// the node may never get. And "held" in answer to a try concerns no place.
func (p *place) noteAnswer(i int, c driver.Claim, nth int, v vote[driver.Grant], held *driver.HeldError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.nodes[i]
	p.known[i] = p.known[i] || v.err == nil || held != nil
	switch {
	case nth != p.nth, held != nil && !c.Queue:
	case v.err == nil:
		s.answered, s.grant = true, v.value
	case held != nil:
		s.answered, s.grant, s.floor = true, driver.Grant{}, held.Fence
	default:
		s.answered = false
	}
}
