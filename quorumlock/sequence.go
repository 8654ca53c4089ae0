package quorumlock

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// A sequence keeps the requests of one token to one node in order. An operation returns
// when a majority has answered, so the next operation with the token may begin while the
// last request is still under way to a slow node. If a release overtook its acquire
// there, it would find nothing, and the acquire would then leave a lease without an
// owner.
//
// So a request waits until the previous request of its token to its node was answered or
// given up. A request that was given up may still arrive: see pendingReleases.
//
// sequences are the sequences that have a request under way.
type sequences struct {
	mu    sync.Mutex // protects tails
	tails map[nodeToken]chan struct{}
}

// A nodeToken identifies a sequence.
type nodeToken struct {
	node  int
	token driver.Token
}

// A slot is the position of one request in its sequence. A request without a token has
// the zero slot, which is in no sequence.
type slot struct {
	sequence       nodeToken
	previous, done chan struct{} // closed when the request ends; nil if there is none
}

// enter takes the next slots of a token, one for each of the nodes. poll calls it before
// it sends the requests, so slots are in the order of the calls of poll.
func (ss *sequences) enter(token driver.Token, nodes []int) []slot {
	slots := make([]slot, len(nodes))
	if token.IsZero() {
		return slots
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k, i := range nodes {
		sequence := nodeToken{i, token}
		slots[k] = slot{sequence: sequence, previous: ss.tails[sequence], done: make(chan struct{})}
		ss.tails[sequence] = slots[k].done
	}
	return slots
}

// wait waits for the request's turn, or until ctx ends.
func (s *slot) wait(ctx context.Context) error {
	if s.previous != nil {
		select {
		case <-s.previous:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// waitWithoutCtx waits for the turn after wait gave up. Its wait ends, because each
// earlier request ends with its own ctx, or with Close.
func (s *slot) waitWithoutCtx() {
	if s.previous != nil {
		<-s.previous
	}
}

// leave ends the request's turn, so that the next request may be sent.
func (ss *sequences) leave(s slot) {
	if s.done == nil {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	close(s.done)
	if ss.tails[s.sequence] == s.done {
		delete(ss.tails, s.sequence)
	}
}
