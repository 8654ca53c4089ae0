package quorumlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// needsRecount reports whether a claim needs recount, because a majority of the nodes is
// not enough. Two mutexes, or a reader and a writer, exclude each other in pairs, and any
// two majorities share a node that sees both. Permits do not exclude each other in pairs:
// with three nodes and a limit of 3, each of four claims may hold on two nodes, while no
// node has more than three claims.
func needsRecount(c driver.Claim) bool { return c.Weight < c.Limit && c.Limit < driver.Unlimited }

// maxCounts is the largest number of counts for one claim. If only later claims leave no
// room for a claim, it counts again, because the later claims count, too, and release
// their grants. After maxCounts the claim is refused in any case.
const maxCounts = 5

// recount checks the limit after a majority has granted a claim for permits. In each
// count, it reads all nodes, and adds up all other claims that hold there, whatever their
// fences. If they and our claim exceed the limit, it counts again. From the second count
// on, it leaves out claims that had no majority in all counts together: these wait,
// although some nodes granted them. If earlier claims still exceed the limit, it refuses
// our claim.
//
// Proof: take all claims that hold at one moment, and let X be the claim whose first
// count began last. Each other claim had a majority before its own first count, so before
// the first count of X, and still has one. So X found that claim on a majority in its
// first count. If that claim lost one node and got another during that count, the first
// two counts together found it on a majority. recount does not compare fences, because a
// claim may get the vote of a node late. There it has a higher fence than claims that
// came after it on other nodes. With that vote it may keep its majority when it loses
// another node.
//
// A repeated claim is not counted again while the counted majority keeps it, because
// claims with larger limits may have come since, for which it need not leave room. The
// fence alone does not show that the majority has kept it: the claim may have lost a
// node, and got another one with the same fence.
//
// If two claims for the last permit come at the same time, each counts the other. The
// earlier claim counts again, because the later one will have released its grants by
// then.
func (a *attempt) recount(ctx context.Context, grant driver.Grant) error {
	d := a.d
	if d.holdings.majorityKeeps(a.claim.Token, a.claim.Name, grant.Fence) {
		return nil // claims with larger limits may have come since
	}
	available := int64(a.claim.Limit - a.claim.Weight)
	all := map[claimKey]*otherClaim{}
	for count := 1; ; count++ {
		began := time.Now()
		entries := d.readEntries(ctx, a.claim.Name, func(v []vote[driver.Entry]) bool { return a.countHolding(v, grant.Fence) >= d.majority })
		a.addHolders(entries, grant.Fence, all, count)
		minNodes := 1 // the number of nodes that a claim must have to count
		if count > 1 {
			minNodes = d.majority - (len(d.nodes) - succeeded(entries))
		}
		var others []driver.Holder
		var weight, earlier int64 // the permits of all others; of the others with an earlier ticket
		for _, o := range all {
			if o.isCounted && o.count == count && len(o.nodes) >= minNodes {
				others = append(others, o.last)
				weight += int64(o.last.Permits)
				if o.before(a.place.tag) {
					earlier += int64(o.last.Permits)
				}
			}
		}
		switch {
		case a.countHolding(entries, grant.Fence) < d.majority:
			for i := range entries {
				if entries[i].err == nil {
					entries[i].err = errGone
				}
			}
			return failuresErr(ctx, d, "acquire", a.claim.Name, entries)
		case weight <= available:
			return nil
		case count > 1 && earlier > available || count == maxCounts:
			first := slices.MinFunc(others, func(x, y driver.Holder) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
			return a.crowdedRefusal(grant.Fence, len(others), first)
		}
		if err := backoff.Wait(ctx, min(max(time.Since(began), time.Millisecond), 20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// An otherClaim is another claim that holds on some nodes.
type otherClaim struct {
	tag
	last      driver.Holder
	isCounted bool
	nodes     map[int]bool // the nodes that have it, or had it in an earlier count
	count     int          // the last count that found it
}

// addHolders adds the other claims that hold on the nodes to all.
//
// A claim with a larger limit that came after ours on each node does not count. Its own
// limit allows it, and it must not make a repeated claim fail.
func (a *attempt) addHolders(entries []vote[driver.Entry], fence uint64, all map[claimKey]*otherClaim, count int) {
	for k, s := range groupByClaim(entries) {
		for _, h := range s.holders {
			if h.Fence == fence && s.digest == a.place.tag.digest {
				continue // ours
			}
			o := all[k]
			if o == nil {
				o = &otherClaim{tag: s.tag, nodes: map[int]bool{}}
				all[k] = o
			}
			o.last, o.count, o.nodes[h.node] = h.Holder, count, true
			o.isCounted = o.isCounted || h.Fence < fence || h.Limit <= a.claim.Limit
		}
	}
}
