package quorumlock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A vote is the answer of one node.
type vote[T any] struct {
	value T
	err   error // errNoAnswer if the node has not answered
}

type grantVotes = []vote[driver.Grant]

var errNoAnswer = errors.New("has not answered")

// answered reports whether the node has answered. It does not use errors.Is, because a
// node may be a quorum itself, whose error wraps errNoAnswer for its own nodes.
func (v vote[T]) answered() bool { return v.err != errNoAnswer } //nolint:errorlint // see above

func unansweredVotes[T any](n int) []vote[T] {
	votes := make([]vote[T], n)
	for i := range votes {
		votes[i].err = errNoAnswer
	}
	return votes
}

// count returns the number of votes whose error matches.
func count[T any](votes []vote[T], matches func(error) bool) (n int) {
	for _, v := range votes {
		if matches(v.err) {
			n++
		}
	}
	return n
}

func answered[T any](votes []vote[T]) int {
	return len(votes) - count(votes, func(err error) bool { return err == errNoAnswer }) //nolint:errorlint // see vote.answered
}

func succeeded[T any](votes []vote[T]) int {
	return count(votes, func(err error) bool { return err == nil })
}

func values[T any](votes []vote[T]) (out []T) {
	for _, v := range votes {
		if v.err == nil {
			out = append(out, v.value)
		}
	}
	return out
}

// nodesOf returns the nodes whose votes match.
func nodesOf[T any](votes []vote[T], matches func(v vote[T]) bool) (nodes []int) {
	for i, v := range votes {
		if matches(v) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

func isHeld(err error) bool        { return errors.Is(err, driver.ErrHeld) }
func isNoSuchLease(err error) bool { return errors.Is(err, driver.ErrNoSuchLease) }

// isRefusal reports whether err is the refusal of a claim by a node.
func isRefusal(err error) bool { return isHeld(err) || errors.Is(err, driver.ErrValueNotBelow) }

// A pollRequest is one request to several nodes at once.
type pollRequest[T any] struct {
	nodes   []int                                       // the nodes to ask, by index
	token   driver.Token                                // requests of one token run in order; zero means no order
	send    func(ctx context.Context, i int) (T, error) // sends the request to one node
	decided func(votes []vote[T]) bool                  // reports whether no other answer matters; nil: all matter

	// timeout is the time limit of each request, independent of ctx; 0 means ctx's
	// deadline, or backgroundRequestLimit if it has none.
	timeout time.Duration

	// These three functions run in turn with the token's other requests to that node,
	// even after poll has returned. They must not block. onAnswer runs before poll counts
	// the node's answer. If the request was given up before its turn, onAnswer runs at
	// once, and onUnsent runs in turn. onDone runs last.
	onAnswer, onDone func(i int, v vote[T])
	onUnsent         func(i int)
}

// backgroundRequestLimit bounds each request if the caller's ctx has no deadline, because
// the request may outlast the call.
const backgroundRequestLimit = 10 * time.Second

// poll asks the nodes in parallel, and returns their answers, by index of the node. When
// the outcome is decided, poll waits a moment for the other nodes, and then returns. An
// unanswered request then goes on in the background, until its own deadline or Close. If
// ctx ends first, poll returns at once, and cancels the requests that are under way,
// unless timeout is set.
func poll[T any](ctx context.Context, d *quorum, r pollRequest[T]) []vote[T] {
	votes := unansweredVotes[T](len(d.nodes))
	missing := len(r.nodes)
	if missing == 0 {
		return votes
	}
	deadline, ok := ctx.Deadline()
	switch {
	case r.timeout > 0:
		deadline = time.Now().Add(r.timeout)
	case !ok:
		deadline = time.Now().Add(backgroundRequestLimit)
	}
	requestCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	stopClosing := context.AfterFunc(d.requestsCtx, cancel)

	type answer struct {
		i int
		v vote[T]
	}
	answers := make(chan answer, missing)
	slots := d.sequences.enter(r.token, r.nodes)
	requests := make([]request, missing)
	var underWay atomic.Int32
	underWay.Store(int32(missing))
	for k, i := range r.nodes {
		d.work.Go(func() {
			defer func() {
				requests[k].end(d.nodes[i])
				if underWay.Add(-1) == 0 {
					stopClosing()
					cancel()
				}
			}()
			defer d.sequences.leave(slots[k])
			v := vote[T]{err: slots[k].wait(requestCtx)}
			sent := v.err == nil
			if sent {
				v.value, v.err = r.send(requestCtx, i)
			}
			if r.onAnswer != nil {
				r.onAnswer(i, v)
			}
			answers <- answer{i, v}
			slots[k].waitWithoutCtx()
			if !sent && r.onUnsent != nil {
				r.onUnsent(i)
			}
			if r.onDone != nil {
				r.onDone(i, v)
			}
		})
	}

	began := time.Now()
	var graceEnd <-chan time.Time
	for isWaiting := true; isWaiting && missing > 0; {
		if ctx.Err() != nil {
			if r.timeout == 0 {
				cancel() // here, because a context.AfterFunc would run later, or not at all once poll returns
			}
			break
		}
		select {
		case a := <-answers:
			votes[a.i] = a.v
			missing--
			if graceEnd == nil && r.decided != nil && r.decided(votes) {
				graceEnd = time.After(d.graceAfter(time.Since(began)))
				isWaiting = !onlyLateMissing(d, r.nodes, votes)
			}
		case <-ctx.Done(): // the beginning of the loop handles it
		case <-graceEnd:
			isWaiting = false
		}
	}
	for isDraining := true; isDraining; { // remove the answers that arrived at the same time
		select {
		case a := <-answers:
			votes[a.i] = a.v
		default:
			isDraining = false
		}
	}
	for k, i := range r.nodes {
		if !votes[i].answered() {
			requests[k].markLate(d.nodes[i])
		}
	}
	return votes
}

// onlyLateMissing reports whether each node that has not answered is also late with an
// earlier request. Then poll does not wait for these nodes, so a node that hangs delays
// only one operation.
func onlyLateMissing[T any](d *quorum, nodes []int, votes []vote[T]) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { return !votes[i].answered() && d.nodes[i].lateRequests.Load() <= 0 })
}

// graceAfter returns the time to wait for the other nodes after the decision of an
// operation. took is the time until that decision.
func (d *quorum) graceAfter(took time.Duration) time.Duration {
	if d.grace > 0 {
		return d.grace
	}
	return max(took*2/5, time.Millisecond)
}

// A request is the state of a request to one node: 0 while poll waits for its answer,
// then requestLate or requestEnded. While it is late, the node counts it.
type request struct{ state atomic.Int32 }

const (
	requestLate  = 1 // it is under way, and poll has returned
	requestEnded = 2
)

func (r *request) markLate(n *node) {
	if r.state.CompareAndSwap(0, requestLate) {
		n.lateRequests.Add(1)
	}
}

func (r *request) end(n *node) {
	if r.state.Swap(requestEnded) == requestLate {
		n.lateRequests.Add(-1)
	}
}
