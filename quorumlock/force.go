package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A node breaks the holders of a name and grants a forced claim in one step. If two
// forced claims reach the nodes in different orders, each node grants both, one after the
// other. Then one claim may have a majority of the answers, although it never held on a
// majority of the nodes at one time. Other claims never break a lease, so only forced
// claims need the following check.
//
// After all answers, the driver reads the nodes. If a majority still has the claim with
// its fence, all these nodes had it in the instant between the last answer and the read.
// The claim counts as granted in that instant, as if there were only one node. Otherwise
// another claim took the name. Then the driver sends the claim again after a random
// pause, so that the two claims do not do this at the same time again. In the end each
// claim has such an instant, and the claim with the last instant keeps the name.
//
// Fences rise in the order of these instants: the majorities of two forced claims share a
// node. That node granted the second claim after the instant of the first, so with a
// greater fence.

// holdMajority repeats a forced claim until a majority of the nodes has it at the same
// time, and returns the grant. Each round updates votes.
func (a *attempt) holdMajority(ctx context.Context, votes grantVotes) (driver.Grant, error) {
	d := a.d
	for round := range maxRounds {
		began := time.Now()
		grant, err := a.agree(ctx, votes)
		if isHeld(err) {
			return driver.Grant{}, err
		}
		entries := d.readEntries(ctx, a.claim.Name, func(entries []vote[driver.Entry]) bool {
			// A majority shows the claim, or cannot show it.
			have, missing := a.countHolding(entries, grant.Fence), len(d.nodes)-answered(entries)
			return have >= d.majority || have+missing < d.majority && succeeded(entries) >= d.majority
		})
		switch {
		case err == nil && a.countHolding(entries, grant.Fence) >= d.majority:
			return grant, nil
		case succeeded(entries) < d.majority:
			return driver.Grant{}, failuresErr(ctx, d, "acquire", a.claim.Name, entries)
		}
		if err := backoff.Wait(ctx, backoff.Random(max(time.Since(began), time.Millisecond)<<min(round, 5))); err != nil {
			return driver.Grant{}, err
		}
		copy(votes, a.claimOnNodes(ctx))
		if succeeded(votes) < d.majority {
			return driver.Grant{}, failuresErr(ctx, d, "acquire", a.claim.Name, votes)
		}
	}
	return driver.Grant{}, failuresErr(ctx, d, "acquire", a.claim.Name, []vote[driver.Entry]{{err: errTaken}})
}

var errTaken = errors.New("other forced claims took the name each time")

// countHolding counts the nodes that have the claim with this fence. It compares the
// fence, because an earlier lease of the token may still have its minimum hold.
func (a *attempt) countHolding(entries []vote[driver.Entry], fence uint64) (n int) {
	for _, e := range values(entries) {
		for _, h := range e.Holders {
			if t, _ := untag(h.Owner); h.Fence == fence && t.digest == a.place.tag.digest {
				n++
			}
		}
	}
	return n
}
