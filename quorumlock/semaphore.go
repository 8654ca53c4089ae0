package quorumlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// counts reports whether a majority of the nodes is not enough for a claim. Two mutexes, or a
// reader and a writer, exclude each other in pairs, and any two majorities have a node in
// common that sees both. Permits do not: with three nodes and a limit of 3, four claims fit on
// two nodes each, and no node ever has more than three.
func counts(c driver.Claim) bool { return c.Weight < c.Limit && c.Limit < driver.All }

// looks is how often the permits are counted before a claim is refused because of others that
// came after it: they count it as well, and give back what they have.
const looks = 4

// recount is the second look that such a claim needs: the entries of a majority of the nodes
// that have granted it are read, and all others that stand there are added up, whatever their
// fences. If they and we are more than the limit, we are not granted.
//
// It is enough. Take all who hold at one moment, and of them the one whose look began last, X.
// Each of the others had a majority before it looked, so before X looked, and still has one; it
// has a node in common with those that X read, and X found it there. Their numbers say nothing:
// who got a vote late has a higher one there than those who came after it elsewhere, and lives
// on with it when it has lost another node.
//
// Of two that come for the last permit at once, both count each other. The one that asked first
// looks again, for the other will have given up by then.
func (a *attempt) recount(ctx context.Context, grant driver.Grant, votes ballots) error {
	d := a.d
	if h, ok := d.held.find(a.claim.Token, a.claim.Name); ok && h.fence == grant.Fence {
		return nil // it was counted, and shown; those with larger limits may have come since
	}
	var nodes []int
	for i, v := range votes {
		if v.in && v.err == nil && v.value.Fence == grant.Fence {
			nodes = append(nodes, i)
		}
	}
	for look := 1; ; look++ {
		began := time.Now()
		entries := poll(ctx, d, ballot[driver.Entry]{
			nodes:   nodes,
			send:    func(ctx context.Context, i int) (driver.Entry, error) { return d.nodes[i].Entry(ctx, a.claim.Name) },
			decided: func(v []vote[driver.Entry]) bool { return succeeded(v) >= d.majority },
		})
		seen, before, others := a.beside(values(entries), grant.Fence)
		room := int64(a.claim.Limit - a.claim.Weight)
		switch {
		case seen < d.majority:
			for i := range entries {
				if entries[i].in && entries[i].err == nil {
					entries[i].err = errGone
				}
			}
			return trouble(ctx, d, "acquire", a.claim.Name, entries)
		case weights(others) <= room:
			return nil
		case weights(before) > room || look == looks:
			sortHolders(others)
			return a.crowded(&driver.HeldError{Fence: grant.Fence, Holders: others})
		}
		if err := rest(ctx, max(time.Since(began), time.Millisecond)); err != nil {
			return err
		}
	}
}

// beside finds those who stand on the nodes beside a claim with this fence, and of those the
// ones that asked before it. It counts the nodes that have the claim itself.
//
// Not among them are those with a larger limit that came after it on each node: they come
// beside whoever holds, and a claim that is asked for again must not be refused because of
// them.
func (a *attempt) beside(entries []driver.Entry, fence uint64) (seen int, before, others []driver.Holder) {
	type other struct {
		driver.Holder
		tag
		counts bool
	}
	all := map[key]other{}
	for _, e := range entries {
		ks := keys{}
		for _, h := range e.Holders {
			t, _ := untag(h.Owner)
			k := ks.next(t)
			if h.Fence == fence && t.digest == a.place.tag.digest {
				seen++ // we are still there
				continue
			}
			all[k] = other{h, t, all[k].counts || h.Fence < fence || h.Limit <= a.claim.Limit}
		}
	}
	for _, o := range all {
		if o.counts {
			others = append(others, o.Holder)
			if o.before(a.place.tag) {
				before = append(before, o.Holder)
			}
		}
	}
	return seen, before, others
}

func weights(holders []driver.Holder) (sum int64) {
	for _, h := range holders {
		sum += int64(h.Weight)
	}
	return sum
}

func succeeded[T any](votes []vote[T]) (n int) {
	for _, v := range votes {
		if v.in && v.err == nil {
			n++
		}
	}
	return n
}
