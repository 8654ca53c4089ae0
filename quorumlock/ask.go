package quorumlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

type vote[T any] struct {
	in    bool // the node has answered
	value T
	err   error
}

type ballots = []vote[driver.Grant]

func answered[T any](votes []vote[T]) (n int) {
	for _, v := range votes {
		if v.in {
			n++
		}
	}
	return n
}

func succeeded[T any](votes []vote[T]) (n int) {
	for _, v := range votes {
		if v.in && v.err == nil {
			n++
		}
	}
	return n
}

func values[T any](votes []vote[T]) (out []T) {
	for _, v := range votes {
		if v.in && v.err == nil {
			out = append(out, v.value)
		}
	}
	return out
}

func refused(votes ballots) (n int) {
	for _, v := range votes {
		if isRefusal(v.err) {
			n++
		}
	}
	return n
}

// isRefusal reports whether err is the refusal of a claim by a node.
func isRefusal(err error) bool {
	return errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrValueNotGreater)
}

// A ballot is one request to several nodes at once.
type ballot[T any] struct {
	nodes   []int                                       // the nodes to ask, by index
	token   driver.Token                                // requests of one token run in order; zero means no order
	send    func(ctx context.Context, i int) (T, error) // sends the request to one node
	decided func(votes []vote[T]) bool                  // reports whether the missing answers cannot change the outcome

	// lasts is the time limit of each request, independent of ctx; 0 means until ctx
	// ends.
	lasts time.Duration

	// These three functions run in turn with the token's other requests to that node,
	// even after poll has returned. They must not block. first runs before poll counts
	// the answer of the node. unsent runs if the request was given up before its turn.
	// after runs last.
	first, after func(i int, v vote[T])
	unsent       func(i int)
}

// backgroundRequestLimit bounds a request for which no caller waits any more if the
// caller's ctx had no deadline.
const backgroundRequestLimit = 10 * time.Second

// poll asks the nodes in parallel, and returns their answers, by index of the node. When
// the outcome is decided, poll waits a moment for the other nodes, and then returns. An
// unanswered request then goes on in the background, until its own deadline or Close. If
// ctx ends first, poll returns at once, and cancels the requests that are under way,
// unless lasts is set.
func poll[T any](ctx context.Context, d *quorum, b ballot[T]) []vote[T] {
	votes := make([]vote[T], len(d.nodes))
	if len(b.nodes) == 0 {
		return votes
	}
	deadline, ok := ctx.Deadline()
	switch {
	case b.lasts > 0:
		deadline = time.Now().Add(b.lasts)
	case !ok:
		deadline = time.Now().Add(backgroundRequestLimit)
	}
	own, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	closing := context.AfterFunc(d.life, cancel)
	u := &outstanding{d: d, missing: len(b.nodes), state: make([]int, len(d.nodes)), last: func() { closing(); cancel() }}

	var order *slot
	if !b.token.IsZero() {
		order = d.sequences.enter(b.token, b.nodes, len(d.nodes))
	}
	type answer struct {
		i int
		v vote[T]
	}
	answers := make(chan answer, len(b.nodes))
	for _, i := range b.nodes {
		d.work.Go(func() {
			defer u.finish(i)
			v := vote[T]{in: true}
			if order != nil {
				defer order.leave(i)
				v.err = order.wait(own, i)
			}
			if v.err == nil {
				v.err = own.Err()
			}
			sent := v.err == nil
			if sent {
				v.value, v.err = b.send(own, i)
			}
			if b.first != nil {
				b.first(i, v)
			}
			answers <- answer{i, v}
			if order != nil {
				order.waitAnyway(i)
			}
			if !sent && b.unsent != nil {
				b.unsent(i)
			}
			if b.after != nil {
				b.after(i, v)
			}
		})
	}

	began := time.Now()
	var timer *time.Timer
	var enough <-chan time.Time
	for in := 0; in < len(b.nodes); {
		settled := false
		if ctx.Err() != nil {
			if b.lasts == 0 {
				cancel() // here, because a context.AfterFunc would run later, or not at all once poll returns
			}
			u.markLate(b.nodes)
			break
		}
		select {
		case a := <-answers:
			votes[a.i] = a.v
			in++
			settled = b.decided(votes)
		case <-ctx.Done(): // the beginning of the loop handles it
		case <-enough:
			u.markLate(b.nodes)
			in = len(b.nodes)
		}
		if settled && timer == nil {
			if u.allLate(b.nodes) {
				u.markLate(b.nodes)
				break
			}
			timer = time.NewTimer(d.patience(time.Since(began)))
			enough = timer.C
		}
	}
	if timer != nil {
		timer.Stop()
	}
	for { // take the answers that arrived at the same time
		select {
		case a := <-answers:
			votes[a.i] = a.v
			continue
		default:
		}
		break
	}
	return votes
}

// patience returns the time to wait for the other nodes after the decision of an
// operation. took is the time until that decision.
func (d *quorum) patience(took time.Duration) time.Duration {
	if d.grace > 0 {
		return d.grace
	}
	return max(took*2/5, time.Millisecond)
}

// An outstanding tracks the requests of a ballot that are still under way.
type outstanding struct {
	d    *quorum
	last func() // called when no request is under way

	mu      sync.Mutex // protects the fields below
	missing int
	state   []int // per node: 0 while its request is under way; then finished or behind
}

const (
	finished = 1
	late     = 2 // the request is under way, and poll does not wait for it
)

func (u *outstanding) finish(i int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state[i] == late {
		u.d.nodes[i].late.Add(-1)
	}
	u.state[i] = finished
	if u.missing--; u.missing == 0 {
		u.last()
	}
}

// markLate marks the requests to these nodes as late: poll no longer waits for them.
func (u *outstanding) markLate(nodes []int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, i := range nodes {
		if u.state[i] == 0 {
			u.state[i] = late
			u.d.nodes[i].late.Add(1)
		}
	}
}

// allLate reports whether each node that has not answered is also late with an earlier
// request. Then poll does not wait for these nodes, so a node that hangs delays only one
// operation.
func (u *outstanding) allLate(nodes []int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, i := range nodes {
		if u.state[i] == 0 && u.d.nodes[i].late.Load() == 0 {
			return false
		}
	}
	return true
}
