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
// sequences are the sequences of all tokens that have a request under way.
type sequences struct {
	mu  sync.Mutex // protects all, and each sequence
	all map[driver.Token]*sequence
}

type sequence struct {
	tails []chan struct{} // per node: closed when the last request there ends
	users int
}

// A slot is the position of one operation in the sequences of its token.
type slot struct {
	sequences *sequences
	token     driver.Token
	sequence  *sequence
	before    []chan struct{} // per node: closed when the previous request ends; nil if there is none
	own       []chan struct{}
}

// enter takes the next slot in the sequences of a token, for a request to some of the
// nodes. poll calls it before it sends the requests, so slots are in the order of the
// calls of poll.
func (ss *sequences) enter(token driver.Token, nodes []int, of int) *slot {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := ss.all[token]
	if l == nil {
		l = &sequence{tails: make([]chan struct{}, of)}
		ss.all[token] = l
	}
	s := &slot{sequences: ss, token: token, sequence: l, before: make([]chan struct{}, of), own: make([]chan struct{}, of)}
	for _, i := range nodes {
		l.users++
		s.before[i], s.own[i] = l.tails[i], make(chan struct{})
		l.tails[i] = s.own[i]
	}
	return s
}

// wait waits for the request's turn at a node, or until ctx ends.
func (s *slot) wait(ctx context.Context, i int) error {
	if s.before[i] == nil {
		return nil
	}
	select {
	case <-s.before[i]:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitAnyway waits for the turn after wait gave up. Its wait ends, because each earlier
// request ends with its own ctx, or with Close.
func (s *slot) waitAnyway(i int) {
	if s.before[i] != nil {
		<-s.before[i]
	}
}

// leave ends the request's turn at a node, so that the next request may be sent.
func (s *slot) leave(i int) {
	ss := s.sequences
	ss.mu.Lock()
	defer ss.mu.Unlock()
	close(s.own[i])
	if s.sequence.tails[i] == s.own[i] {
		s.sequence.tails[i] = nil
	}
	if s.sequence.users--; s.sequence.users == 0 {
		delete(ss.all, s.token)
	}
}
