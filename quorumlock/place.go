package quorumlock

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A place is the record of a waiting claim: its tag, which is the same in each attempt,
// and its state on each node. The driver counts the nodes' signals with it.
type place struct {
	d    *quorum
	tag  tag
	name string

	mu                sync.Mutex // protects the fields below
	claim             driver.Claim
	turnEnd           chan struct{} // closed at the end of the present turn; nil without one
	closed            bool          // removed from places, because the claim was granted or given up
	touchedAt         time.Time
	queuedAt          time.Time   // the start of the last attempt that queued
	attempts          int         // the number of attempts
	nodes             []nodeState // the answers and signals since the last attempt that queued
	reached           []bool      // the nodes that have queued or granted the claim
	waitsSince        time.Time   // the beginning of the wait for other nodes' signals, or zero
	waitsForLastNodes bool        // the wait is for the last few nodes, not for a majority
	signalledFence    uint64      // the highest fence in a signal that the claim was granted
	majorityClaim     string      // the digest of the other claim with a majority, in the last split vote
	majoritySince     time.Time   // the time of the first split vote with majorityClaim
	majoritySeen      int         // the number of split votes with majorityClaim
}

// A nodeState is one node's answer to the last attempt, and its last signal of a grant.
type nodeState struct {
	answered  bool         // the node has answered the last attempt
	grant     driver.Grant // the grant in that answer, if any, or the one that the nodes agreed on since
	lastFence uint64       // if the answer was a refusal: the last fence that the node had granted to any claim
	signaled  driver.Grant // the grant in a signal, which may have arrived before the answer
}

// granted returns the grant of the claim on the node, according to its answer and its
// signal.
//
// A signal counts only if the node has answered the last attempt. That attempt renewed
// the place for its QueueTTL, so the grant that replaced the place lasts as long. The
// signal's fence must also be greater than all fences that the node had granted by then.
// Otherwise the signal is an old one, of a grant that the driver has released.
func (s *nodeState) granted() (driver.Grant, bool) {
	switch {
	case !s.answered:
		return driver.Grant{}, false
	case s.grant.Fences > 0:
		return s.grant, true
	case s.signaled.Fence > s.lastFence:
		return s.signaled, true
	}
	return driver.Grant{}, false
}

func newPlace(d *quorum, c driver.Claim) *place {
	return &place{
		d: d, tag: newTag(c.Token, d.ticket()), name: c.Name, claim: c, touchedAt: time.Now(),
		nodes: make([]nodeState, len(d.nodes)), reached: make([]bool, len(d.nodes)),
	}
}

// withTag returns the claim as the nodes get it.
func (p *place) withTag(c driver.Claim) driver.Claim {
	c.Owner, c.Ticket = p.tag.addTo(c.Owner), p.tag.ticket
	return c
}

// beginTurn finds or makes the place of a claim, and begins a turn there. A place has
// only one turn at a time, because two turns with the answers of different nodes could
// agree on two fences. So beginTurn may wait for another attempt of the same token, or
// for an agreement that signals have started. endTurn ends the turn.
//
// number is the number of this attempt at the place.
func (d *quorum) beginTurn(ctx context.Context, c driver.Claim) (p *place, number int, err error) {
	for {
		p = d.places.join(d, c)
		number, turnEnd := p.tryBeginTurn(c)
		switch {
		case number > 0:
			return p, number, nil
		case turnEnd == nil: // the place was closed after join had returned it
			continue
		}
		select {
		case <-turnEnd:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// tryBeginTurn begins a turn, and returns the attempt's number. If another turn is under
// way, it returns 0 and the channel to wait for.
func (p *place) tryBeginTurn(c driver.Claim) (number int, turnEnd <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.turnEnd != nil {
		return 0, p.turnEnd
	}
	p.turnEnd = make(chan struct{})
	return p.beginAttemptLocked(c), nil
}

// endTurn ends the turn, and checks the signals that arrived meanwhile.
func (p *place) endTurn() {
	p.mu.Lock()
	close(p.turnEnd)
	p.turnEnd = nil
	p.mu.Unlock()
	p.checkSignals()
}

// beginAttemptLocked prepares the place for another attempt. Earlier answers and signals
// do not count any more: a node may have lost its data since, and the client's term
// begins with this attempt, which a node may never get.
//
// If a waiter makes a try, the answers stay as they are, because a try does not renew
// places.
func (p *place) beginAttemptLocked(c driver.Claim) (number int) {
	p.touchedAt = time.Now()
	if c.Queue {
		p.claim, p.queuedAt = p.withTag(c), p.touchedAt
		clear(p.nodes)
	}
	p.waitsSince = time.Time{}
	p.attempts++
	return p.attempts
}

func (p *place) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// closeIfStale closes the place if no node can know the claim any more.
func (p *place) closeIfStale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || p.turnEnd == nil && time.Since(p.touchedAt) > 2*max(p.claim.QueueTTL, p.claim.TTL)
	return p.closed
}

func (p *place) forgetGrants(nodes []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range nodes {
		p.nodes[i] = nodeState{}
	}
}

// outdateSignals raises the fence of a refusal, so that the client ignores earlier
// signals of a grant. The client may not have read such a signal yet, and would count its
// term from this attempt. But some nodes of the majority that granted may not have got
// this attempt. Their grants end sooner, or were released since.
func (p *place) outdateSignals(held *driver.HeldError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held.Fence = max(held.Fence, p.signalledFence)
}

// ticket returns the claim's ticket for a node. If the claim has had a place there, it
// gets a new ticket, because a claim that lost its place joins at the end of the queue.
func (p *place) ticket(i int, newTicket uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reached[i] {
		return newTicket
	}
	return p.tag.ticket
}

// recordMajorityClaim records the digest of the other claim that has a majority, or "" if
// there is none. It returns the age of its first record, and the number of earlier ones.
func (p *place) recordMajorityClaim(digest string) (age time.Duration, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if digest != p.majorityClaim {
		p.majorityClaim, p.majoritySince, p.majoritySeen = digest, time.Now(), 0
	}
	p.majoritySeen++
	return time.Since(p.majoritySince), p.majoritySeen - 1
}

// recordAnswer records the answer of a node to an attempt. A node's answers to one token
// arrive in order. The answer to an earlier attempt does not count, because the node may
// never get the last one. The refusal of a try does not count either, because a try does
// not renew the place.
func (p *place) recordAnswer(i int, c driver.Claim, number int, v vote[driver.Grant], held *driver.HeldError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.nodes[i]
	p.reached[i] = p.reached[i] || v.err == nil || held != nil
	switch {
	case number != p.attempts, held != nil && !c.Queue:
	case v.err == nil:
		s.answered, s.grant = true, v.value
	case held != nil:
		s.answered, s.grant, s.lastFence = true, driver.Grant{}, held.Fence
	default:
		s.answered = false
	}
}

// places are the waiting claims, by token.
type places struct {
	mu      sync.Mutex // protects the fields below
	all     map[driver.Token]*place
	purgeAt int // the number of places at which stale places are removed
}

// join finds or makes the place of a claim. It does not store the place of a try.
func (ps *places) join(d *quorum, c driver.Claim) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[c.Token]
	if p == nil || p.name != c.Name { // a token may claim several names, but signals wake only one of the claims
		p = newPlace(d, c)
		if c.Queue && ps.all[c.Token] == nil {
			if len(ps.all) >= ps.purgeAt {
				maps.DeleteFunc(ps.all, func(_ driver.Token, p *place) bool { return p.closeIfStale() })
				ps.purgeAt = 2*len(ps.all) + 64
			}
			ps.all[c.Token] = p
		}
	}
	return p
}

// leave removes a place, because its claim was granted or given up.
func (ps *places) leave(token driver.Token, name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.all[token]; p != nil && p.name == name {
		delete(ps.all, token)
		p.close()
	}
}

func (ps *places) find(token driver.Token) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[token]
}

func (ps *places) stop() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.close()
	}
	clear(ps.all)
}
