package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// maxRounds is the number of times that the driver asks the nodes to raise a fence. Then
// it gives up. One round is enough unless the nodes grant other claims meanwhile. If
// several claims raise their fences at the same time, the claim with the highest number
// succeeds in each round, so there are no more rounds than claims. Usually several
// succeed at once.
const maxRounds = 100

var errRaiseUnanswered = errors.New("has not answered") // the vote does not count, but the node has granted the claim

var errDisagree = errors.New("the nodes granted other claims, each time before they had agreed on its fence")

var errGone = errors.New("the lease was gone before the nodes had agreed on its fence")

// A crowdedError says that a node has granted the claim, and then other claims that leave
// no room for it. It is not a refusal, because the driver has to release a lease.
type crowdedError struct{ held *driver.HeldError }

func (e *crowdedError) Error() string { return "other claims came between: " + e.held.Error() }

// crowdedRefusal returns the refusal of a claim that a majority has granted, if other
// claims leave no room for it.
func (a *attempt) crowdedRefusal(fence uint64, holders int, first driver.Holder) *driver.HeldError {
	retryAfter := 5*time.Millisecond + backoff.Random(20*time.Millisecond)
	out := &driver.HeldError{Name: a.claim.Name, Fence: fence, Holders: holders, Holder: first, RetryAfter: retryAfter}
	if a.claim.Queue {
		out.Position = 1
	}
	return out
}

// agree gives a granted claim the same fence on a majority of the nodes, and returns the
// grant. Usually the nodes granted the same fence, and agree sends nothing.
//
// Otherwise it asks the nodes with a lower fence to raise it. A node that has granted
// other claims meanwhile answers with a higher fence than requested, because it grants
// each number once. Then the other nodes have to raise their fences again. If two claims
// raise each other's fences like this, each adds a random number.
func (a *attempt) agree(ctx context.Context, votes grantVotes) (driver.Grant, error) {
	d := a.d
	for round := range maxRounds {
		if grant, ok := d.agreed(votes); ok {
			return grant, nil
		}
		if succeeded(votes) < d.majority {
			break
		}
		target := uint64(0)
		for _, grant := range values(votes) {
			target = max(target, grant.Fence)
		}
		if round > 0 {
			target += backoff.RandomN(1 << min(4+round, 12))
		}
		a.raiseFences(ctx, votes, target)
	}
	if succeeded(votes) >= d.majority {
		for i := range votes {
			votes[i].err = errDisagree
		}
		return driver.Grant{}, failuresErr(ctx, d, "raise", a.claim.Name, votes)
	}
	for _, v := range votes {
		if c, ok := errors.AsType[*crowdedError](v.err); ok {
			first := c.held.Holder
			_, first.Owner = untag(first.Owner)
			return driver.Grant{}, a.crowdedRefusal(c.held.Fence, c.held.Holders, first)
		}
	}
	for i, v := range votes {
		if v.err == nil {
			votes[i].err = errGone
		}
	}
	return driver.Grant{}, failuresErr(ctx, d, "raise", a.claim.Name, votes)
}

// agreed returns the grant if a majority has the same fence. Its number of fences and its
// TTL are the largest that a majority has.
func (d *quorum) agreed(votes grantVotes) (driver.Grant, bool) {
	grants := values(votes)
	for _, g := range grants {
		var counts []int
		var ttls []time.Duration
		for _, other := range grants {
			ttls = append(ttls, -other.TTL)
			if other.Fence == g.Fence {
				counts = append(counts, -other.Fences)
			}
		}
		if len(counts) >= d.majority {
			return driver.Grant{Fence: g.Fence, Fences: -nthSmallest(d.majority, counts), TTL: -nthSmallest(d.majority, ttls)}, true
		}
	}
	return driver.Grant{}, false
}

// raiseFences asks the nodes with a lower fence to raise it, and updates votes.
func (a *attempt) raiseFences(ctx context.Context, votes grantVotes, target uint64) {
	d := a.d
	nodes := nodesOf(votes, func(v vote[driver.Grant]) bool { return v.err == nil && v.value.Fence < target })
	have := succeeded(votes) - len(nodes)
	raised := poll(ctx, d, pollRequest[uint64]{
		nodes: nodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (uint64, error) {
			return d.nodes[i].RaiseFence(ctx, a.lease(), target)
		},
		decided: func(answers []vote[uint64]) bool {
			n := have
			for _, fence := range values(answers) {
				if fence == target {
					n++
				}
			}
			return n >= d.majority
		},
	})
	for _, i := range nodes {
		switch r := raised[i]; {
		case !r.answered():
			votes[i].err = errRaiseUnanswered // the node may have raised the fence
		case isHeld(r.err):
			held, _ := errors.AsType[*driver.HeldError](r.err)
			votes[i].err = &crowdedError{held}
		default:
			votes[i].value.Fence, votes[i].err = r.value, r.err
		}
	}
}
