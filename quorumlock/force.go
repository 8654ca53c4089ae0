package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// On one node a forced claim breaks the holders of the name and is granted in one step.
// If two forced claims reach the nodes in different orders, each node grants both, one
// after the other. Then one of them may have a majority of the answers, though it had a
// majority of the nodes at no time. Other claims never break a lease, so only forced
// claims need this.
//
// So a forced claim reads the nodes a second time, when it has all its answers. If a
// majority still has it with its fence, then they all had it at once in the instant
// between the two reads: it was granted then, as if there were one node only. If not,
// another claim took it, and we take it again after a random pause, so that the two do
// not repeat that in step. Each of several claims has its instant in the end, and the one
// with the last instant keeps the name.
//
// Fences rise along those instants. Any two of these claims share a node. The first held
// it at its instant, so the node granted the second later, with a greater fence.

// hold makes sure that a majority which granted a forced claim had it all at once, and
// returns the grant. Each round brings the votes up to date.
func (a *attempt) hold(ctx context.Context, votes ballots) (driver.Grant, error) {
	d := a.d
	for round := range rounds {
		began := time.Now()
		grant, err := a.agree(ctx, votes)
		if errors.Is(err, driver.ErrHeld) {
			return driver.Grant{}, err
		}
		entries := a.readUntilHeld(ctx, grant.Fence)
		switch {
		case err == nil && a.holds(entries, grant.Fence) >= d.majority:
			return grant, nil
		case succeeded(entries) < d.majority:
			return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, entries)
		}
		if err := backoff.Wait(ctx, backoff.Below(max(time.Since(began), time.Millisecond)<<min(round, 5))); err != nil {
			return driver.Grant{}, err
		}
		copy(votes, a.claimOnNodes(ctx, d.everyone()))
		if succeeded(votes) < d.majority {
			return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, votes)
		}
	}
	return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, []vote[driver.Entry]{{in: true, err: errTaken}})
}

var errTaken = errors.New("others took it by force, again and again")

// readUntilHeld reads all nodes, until a majority shows the claim with this fence, or
// cannot show it.
func (a *attempt) readUntilHeld(ctx context.Context, fence uint64) []vote[driver.Entry] {
	d := a.d
	return poll(ctx, d, ballot[driver.Entry]{
		nodes: d.everyone(),
		send:  func(ctx context.Context, i int) (driver.Entry, error) { return d.nodes[i].Inspect(ctx, a.claim.Name) },
		decided: func(entries []vote[driver.Entry]) bool {
			have, missing := a.holds(entries, fence), len(d.nodes)-answered(entries)
			return have >= d.majority || have+missing < d.majority && succeeded(entries) >= d.majority
		},
	})
}

// holds counts the nodes that have the claim with this fence. (A minimum hold may keep an
// earlier lease of the same token beside it.)
func (a *attempt) holds(entries []vote[driver.Entry], fence uint64) (n int) {
	for _, e := range values(entries) {
		for _, h := range e.Holders {
			if t, _ := untag(h.Owner); h.Fence == fence && t.digest == a.place.tag.digest {
				n++
			}
		}
	}
	return n
}
