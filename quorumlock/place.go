package quorumlock

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A place is what we know of a claim that waits: its tag, which stays the same however
// often it asks, and how it stands on each node, so that signals from the nodes can be
// counted.
type place struct {
	d    *Driver
	tag  tag
	name string

	mu      sync.Mutex // protects what follows
	claim   driver.Claim
	busy    chan struct{} // there while somebody asks, or makes the nodes agree; closed when that ends
	gone    bool          // nobody finds it any more: it was granted, or given up
	touched time.Time
	queued  time.Time   // when the last attempt that queued began
	nth     int         // of the attempts
	nodes   []standing  // since the last attempt that queued
	known   []bool      // which of them have given it a place, or the name
	timer   *time.Timer // ends the waiting for other nodes' signals
	waited  bool        // it has
	patient bool        // it runs for those of the last few, not for a majority
	said    uint64      // the fence that was said to be granted
	firm    [10]byte    // who else had a majority when we had a vote, at the last look
	since   time.Time   // when it was first seen
	looks   int         // since then
}

// A standing is what one node said of a claim since it was sent last, and the last signal
// of a grant.
type standing struct {
	answered bool         // the last attempt, and with this
	grant    driver.Grant // if it was granted
	floor    uint64       // if not: the last fence that the node had granted to anybody
	heard    driver.Grant // by signal; it may have come before the answer
}

// granted is the grant that the claim has on the node, as far as we know.
//
// A signal counts only beside the answer of the last attempt: that attempt made the place
// last its QueueTTL, and so the grant that took its place does too. And only if its fence
// is above all that the node had granted by then, or it is an old one, of a grant that we
// gave back.
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

func newPlace(d *Driver, c driver.Claim) *place {
	return &place{
		d: d, tag: newTag(c.Token, d.ticket()), name: c.Name, claim: c, touched: time.Now(),
		nodes: make([]standing, len(d.nodes)), known: make([]bool, len(d.nodes)),
	}
}

// turn finds the place of a claim, or makes one, and takes its turn there: the nodes are
// made to agree on a fence by one at a time, for two who had heard different nodes could
// agree on two. So it may have to wait for another attempt of the same token, or for what
// signals have begun. It is over with done.
//
// It returns which attempt at the place this is.
func (d *Driver) turn(ctx context.Context, c driver.Claim) (p *place, nth int, err error) {
	for {
		p = d.placed.join(d, c)
		nth, busy := p.begin(c)
		switch {
		case nth > 0:
			return p, nth, nil
		case busy == nil: // it was given up since we found it
			continue
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// begin takes a turn, and says which attempt at the place this is; or what to wait for.
func (p *place) begin(c driver.Claim) (nth int, busy <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.busy != nil {
		return 0, p.busy
	}
	p.busy = make(chan struct{})
	return p.askLocked(c), nil
}

// done lets others have their turn, and looks at what came in meanwhile.
func (p *place) done() {
	p.mu.Lock()
	close(p.busy)
	p.busy = nil
	p.mu.Unlock()
	p.weigh()
}

// askLocked makes the place ready for another attempt. What was heard of a node before
// counts no more: it may have lost its data since, and what it says now is of a time
// after that. And our client counts its trust from the sending of this attempt, which the
// node may never hear of.
//
// A waiter may try, too. A try keeps no place, so it leaves what was heard as it is.
func (p *place) askLocked(c driver.Claim) (nth int) {
	p.touched = time.Now()
	if c.Queue {
		p.claim, p.queued = c, p.touched
		clear(p.nodes)
	}
	p.quietLocked()
	p.nth++
	return p.nth
}

// close makes sure that nobody finds the place any more.
func (p *place) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *place) closeLocked() {
	p.gone = true
	p.quietLocked()
}

// closeIfStale closes it if no node can know the claim any more.
func (p *place) closeIfStale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy != nil || time.Since(p.touched) <= 2*max(p.claim.QueueTTL, p.claim.TTL) {
		return false
	}
	p.closeLocked()
	return true
}

func (p *place) quietLocked() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer, p.waited, p.patient = nil, false, false
}

// givesBack forgets the grants of these nodes.
func (p *place) givesBack(nodes []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range nodes {
		p.nodes[i] = standing{}
	}
}

// outdate makes an answer "held" say that whatever was said to be granted before it is
// old. Our client may have that signal still, and would trust it from the sending of this
// attempt; but of the majority that it was said of, some nodes may not have heard of this
// attempt, and keep what they granted for less, or have been given back since.
func (p *place) outdate(held *driver.HeldError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held.Fence = max(held.Fence, p.said)
}

// ticket is the one to ask a node with. Where the claim has stood before it is as if it
// came now, for a place that was lost is taken at the end of the queue.
func (p *place) ticket(i int, now uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[i] {
		return now
	}
	return p.tag.ticket
}

// looked notes which other claim has a majority, and returns for how long, and how often,
// that has been seen.
func (p *place) looked(firm [10]byte) (since time.Duration, is bool, nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if firm != p.firm {
		p.firm, p.since, p.looks = firm, time.Now(), 0
	}
	p.looks++
	return time.Since(p.since), firm != [10]byte{}, p.looks - 1
}

// told notes what a node answered to an attempt. Answers of one token from one node come
// in order. One to an earlier attempt says nothing of the last, which may not come to the
// node; and "held" to a try is said of no place.
func (p *place) told(i int, c driver.Claim, nth int, v vote[driver.Grant], held *driver.HeldError) {
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
