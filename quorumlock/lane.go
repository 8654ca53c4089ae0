package quorumlock

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// A lane keeps the requests of one token to one node in order. An operation answers when
// a majority has, so the next one for the same token can come while the last is still on
// its way to a slow node: a release that overtook its acquire there would find nothing,
// and the acquire would then leave a lease that nobody knows of.
//
// So a request waits until the one before it, of its token and its node, has ended. That
// is when it was answered or given up, not when it can no longer arrive: for that, see
// owed.
//
// lanes are those of all tokens that have a request under way.
type lanes struct {
	mu  sync.Mutex // protects all, and each lane
	all map[driver.Token]*lane
}

type lane struct {
	tails []chan struct{} // per node: closed when the last request there ends
	users int
}

// A slot is the place of one operation in the lane of its token.
type slot struct {
	lanes  *lanes
	token  driver.Token
	lane   *lane
	before []chan struct{} // per node: what to wait for, nil for nothing
	own    []chan struct{}
}

// enter takes the next place in the lane of a token for a request to some of so many
// nodes. It is called before anything is sent, so places are in the order of the calls.
func (ls *lanes) enter(token driver.Token, nodes []int, of int) *slot {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[token]
	if l == nil {
		l = &lane{tails: make([]chan struct{}, of)}
		ls.all[token] = l
	}
	s := &slot{lanes: ls, token: token, lane: l, before: make([]chan struct{}, of), own: make([]chan struct{}, of)}
	for _, i := range nodes {
		l.users++
		s.before[i], s.own[i] = l.tails[i], make(chan struct{})
		l.tails[i] = s.own[i]
	}
	return s
}

// wait waits for our turn at a node.
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

// waitAnyway waits for our turn whatever it takes, after wait gave up: each request ends
// with its own ctx, or with Close.
func (s *slot) waitAnyway(i int) {
	if s.before[i] != nil {
		<-s.before[i]
	}
}

// leave lets the next one have its turn at a node. It comes after our own turn.
func (s *slot) leave(i int) { s.lanes.leave(s, i) }

func (ls *lanes) leave(s *slot, i int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	close(s.own[i])
	if s.lane.tails[i] == s.own[i] {
		s.lane.tails[i] = nil
	}
	if s.lane.users--; s.lane.users == 0 {
		delete(ls.all, s.token)
	}
}
