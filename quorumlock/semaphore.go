package quorumlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// counts reports whether a majority of the nodes is not enough for a claim. Two mutexes,
// or a reader and a writer, exclude each other in pairs, and any two majorities share a
// node that sees both. Permits do not: with three nodes and a limit of 3, each of four
// claims fits on two nodes, and no node ever has more than three claims.
func counts(c driver.Claim) bool { return c.Weight < c.Limit && c.Limit < driver.Unlimited }

// maxCounts is the largest number of times that a claim counts permits. If only later
// claims are in its way, it counts again, because they count, too, and give their grants
// back. After maxCounts the claim is refused in any case.
const maxCounts = 5

// recount checks the limit after a majority has granted a claim for a permit. In a look,
// it reads all nodes, and adds up all other claims that hold there, whatever their
// fences. If they and ours exceed the limit, it looks again. From then on it leaves out
// claims that had no majority in all looks together: these wait, although some nodes
// granted them. If earlier claims still exceed the limit, it refuses our claim.
//
// This is enough. Take all claims that hold at one moment, and let X be the claim whose
// first look began last. Each other claim had a majority before its own look, so before
// the first look of X, and still has one. So X found that claim on a majority in its
// first look. If the claim lost one node and got another during that look, both looks
// together found it on a majority. Fences do not show which claim came first: a claim may
// get the vote of a node late. There it has a higher fence than claims that came after it
// on other nodes. With that vote it may keep its majority when it loses another node.
//
// A repeated claim is not counted again, as long as the counted majority has kept it.
// Claims with larger limits, for which it need not leave room, may have come since. The
// fence does not show whether the majority has kept the claim: it may have lost that
// majority, and found another node for the same fence.
//
// Two claims that come for the last permit at once count each other. The earlier claim
// looks again, because the later one will have given up by then.
func (a *attempt) recount(ctx context.Context, grant driver.Grant) error {
	d := a.d
	if d.held.counted(a.claim.Token, a.claim.Name, grant.Fence) {
		return nil // claims with larger limits may have come since
	}
	room := int64(a.claim.Limit - a.claim.Weight)
	all := map[key]*other{}
	for look := 1; ; look++ {
		began := time.Now()
		entries := d.read(ctx, a.claim.Name, func(v []vote[driver.Entry]) bool { return a.holds(v, grant.Fence) >= d.majority })
		seen := a.beside(entries, grant.Fence, all, look)
		least := 1 // how many nodes a claim must have to count
		if look > 1 {
			least = d.majority - (len(d.nodes) - succeeded(entries))
		}
		var others, before []driver.Holder
		for _, o := range all {
			if o.counts && o.look == look && len(o.on) >= least {
				others = append(others, o.Holder)
				if o.before(a.place.tag) {
					before = append(before, o.Holder)
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
		case weights(others) <= room:
			return nil
		case look > 1 && weights(before) > room || look == maxCounts:
			first := slices.MinFunc(others, func(x, y driver.Holder) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
			return a.crowded(&driver.HeldError{Fence: grant.Fence, Holders: len(others), Holder: first})
		}
		if err := backoff.Wait(ctx, min(max(time.Since(began), time.Millisecond), 20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// An other is a claim that holds beside ours on some nodes.
type other struct {
	driver.Holder
	tag
	counts bool
	on     map[int]bool // the nodes that have it, or had it at an earlier look
	look   int          // the last look that saw it
}

// beside notes the claims that hold on the nodes beside our claim, and counts the nodes
// that have our claim with this fence.
//
// A claim with a larger limit that came after ours on each node does not count. It may
// come beside any holder, and must not make a repeated claim fail.
func (a *attempt) beside(entries []vote[driver.Entry], fence uint64, all map[key]*other, look int) (seen int) {
	for i, e := range entries {
		if !e.in || e.err != nil {
			continue
		}
		ks := keys{}
		for _, h := range e.value.Holders {
			t, _ := untag(h.Owner)
			k := ks.next(t)
			if h.Fence == fence && t.digest == a.place.tag.digest {
				seen++ // ours
				continue
			}
			o := all[k]
			if o == nil {
				o = &other{tag: t, on: map[int]bool{}}
				all[k] = o
			}
			o.Holder, o.look, o.on[i] = h, look, true
			o.counts = o.counts || h.Fence < fence || h.Limit <= a.claim.Limit
		}
	}
	return seen
}

func weights(holders []driver.Holder) (sum int64) {
	for _, h := range holders {
		sum += int64(h.Permits)
	}
	return sum
}
