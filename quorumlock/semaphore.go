package quorumlock

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// counts reports whether a majority of the nodes is not enough for a claim. Two mutexes, or a reader and a writer,
// exclude each other in pairs, and any two majorities have a node in common that sees both. Permits do not: with
// three nodes and a limit of 3, four claims fit on two nodes each, and no node ever has more than three.
func counts(c driver.Claim) bool { return c.Weight < c.Limit && c.Limit < driver.All }

// recount is the second look that such a claim needs. Its fence is agreed on by now, so it is in the entries of a
// majority; they are read, and all that stand before us on any of those nodes are added up. If they
// and we are more than the limit, we are not granted.
//
// It is enough. Take all who hold at one moment, and of them the one with the highest fence, X. Each of the others, Y,
// has a node in common with X on which both have their own fence; Y's is lower, so it was given there before X's
// was; X read that entry later, and found Y in it. So X counted everybody. And no more than those before us are
// counted, or a claim that is repeated would be refused because of others, with larger limits, who came after it.
func (a *attempt) recount(ctx context.Context, grant driver.Grant, votes ballots) error {
	d := a.d
	var nodes []int
	for i, v := range votes {
		if v.in && v.err == nil && v.value.Fence == grant.Fence {
			nodes = append(nodes, i)
		}
	}
	entries := poll(ctx, d, ballot[driver.Entry]{
		nodes:   nodes,
		send:    func(ctx context.Context, i int) (driver.Entry, error) { return d.nodes[i].Entry(ctx, a.claim.Name) },
		decided: func(v []vote[driver.Entry]) bool { return succeeded(v) >= d.majority },
	})
	before := map[key]driver.Holder{}
	seen, weight := 0, int64(a.claim.Weight)
	for _, e := range values(entries) {
		ks := keys{}
		for _, h := range e.Holders {
			t, _ := untag(h.Owner)
			switch k := ks.next(t); {
			case h.Fence == grant.Fence:
				seen++ // we are still there
			case h.Fence < grant.Fence:
				if _, known := before[k]; !known {
					before[k] = h
					weight += int64(h.Weight)
				}
			}
		}
	}
	switch {
	case seen < d.majority:
		for i := range entries {
			if entries[i].in && entries[i].err == nil {
				entries[i].err = errGone
			}
		}
		return trouble(ctx, d, "acquire", a.claim.Name, entries)
	case weight <= int64(a.claim.Limit):
		return nil
	}
	held := &driver.HeldError{Fence: grant.Fence}
	for _, h := range before {
		held.Holders = append(held.Holders, h)
	}
	sortHolders(held.Holders)
	return a.crowded(held)
}

func succeeded[T any](votes []vote[T]) (n int) {
	for _, v := range votes {
		if v.in && v.err == nil {
			n++
		}
	}
	return n
}
