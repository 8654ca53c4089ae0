package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/pause"
)

// On one node a forced claim breaks the holders of the name and is granted in one step.
// Two that come to several nodes in different orders are granted by all of them, one
// after the other, and then one may have had a majority of the answers and at no time a
// majority of the nodes. Others never break anybody, so nothing else needs this.
//
// So a forced claim looks a second time, when it has all its answers. If a majority still
// has it with the fence it got, then they had it in the instant between the two looks,
// all at once: it was granted then, as if there were one node only. If not, somebody else
// took it from us, and we take it again, after a random while, or they would do the same.
// Each of several has its instant in the end, and the one that has the last keeps the
// name.
//
// Fences rise along those instants: on a node that two of them have in common, the first
// was the holder at the first instant, so the second was granted, and given its fence,
// after it.

// hold makes sure that a majority which has granted a forced claim had it all at once,
// and returns the grant. The votes are brought up to date with every round.
func (a *attempt) hold(ctx context.Context, votes ballots) (driver.Grant, error) {
	d := a.d
	for round := range rounds {
		began := time.Now()
		grant, err := a.agree(ctx, votes)
		if errors.Is(err, driver.ErrHeld) {
			return driver.Grant{}, err
		}
		entries := a.look(ctx, grant.Fence)
		switch {
		case err == nil && a.holds(entries, grant.Fence) >= d.majority:
			return grant, nil
		case succeeded(entries) < d.majority:
			return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, entries)
		}
		if err := pause.For(ctx, backoff.Below(max(time.Since(began), time.Millisecond)<<min(round, 5))); err != nil {
			return driver.Grant{}, err
		}
		copy(votes, a.canvass(ctx, d.everyone()))
		if succeeded(votes) < d.majority {
			return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, votes)
		}
	}
	return driver.Grant{}, trouble(ctx, d, "acquire", a.claim.Name, []vote[driver.Entry]{{in: true, err: errTaken}})
}

var errTaken = errors.New("others took it by force, again and again")

// look reads all nodes, until so many have this fence of ours that they are a majority,
// or cannot be.
func (a *attempt) look(ctx context.Context, fence uint64) []vote[driver.Entry] {
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

// holds counts the nodes that have the claim with this fence. (An earlier lease of the
// same token may be kept beside it.)
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
