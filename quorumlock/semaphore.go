package quorumlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pause"
)

// counts reports whether a majority of the nodes is not enough for a claim. Two mutexes,
// or a reader and a writer, exclude each other in pairs, and any two majorities have a
// node in common that sees both. Permits do not: with three nodes and a limit of 3, four
// claims fit on two nodes each, and no node ever has more than three.
func counts(c driver.Claim) bool { return c.Weight < c.Limit && c.Limit < driver.Unlimited }

// looks is how often the permits are counted before a claim is refused because of others
// that came after it: they count it as well, and give back what they have.
const looks = 5

// recount is the second look that such a claim needs: all nodes are read, and all others
// that stand there are added up, whatever their fences. If they and we are more than the
// limit, we look again, and then those do not count that have no majority of the nodes in
// all looks together: they have a vote too many, and wait. If it is still too much, we
// are not granted.
//
// It is enough. Take all who hold at one moment, and of them the one whose first look
// began last, X. Each of the others had a majority before it looked, so before X looked,
// and still has one: X found it on so many nodes in its first look, or, if it got one
// late and lost another in the middle of that, in both together. Their numbers say
// nothing: a claim that got a vote late has a higher one there than those that came after
// it elsewhere, and lives on with it when it has lost another node.
//
// A claim that is asked for again is not counted again, as long as a majority has kept
// what was counted: claims with larger limits, to which it need not leave room, may have
// come since. The fence does not tell: it may have lost its majority, and have found
// another node for the same fence.
//
// Of two that come for the last permit at once, both count each other. The one that asked
// first looks again, for the other will have given up by then.
func (a *attempt) recount(ctx context.Context, grant driver.Grant) error {
	d := a.d
	if d.held.counted(a.claim.Token, a.claim.Name, grant.Fence) {
		return nil // those with larger limits may have come since
	}
	room := int64(a.claim.Limit - a.claim.Weight)
	all := map[key]*other{}
	for look := 1; ; look++ {
		began := time.Now()
		entries := a.readOurs(ctx, grant.Fence)
		seen := a.beside(entries, grant.Fence, all, look)
		least := 1 // of the nodes that a claim must have, to count
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
		case look > 1 && weights(before) > room || look == looks:
			first := slices.MinFunc(others, func(x, y driver.Holder) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
			return a.crowded(&driver.HeldError{Fence: grant.Fence, Holders: len(others), Holder: first})
		}
		if err := pause.For(ctx, min(max(time.Since(began), time.Millisecond), 20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// readOurs reads all nodes, and does not wait for those beyond a majority that has this
// fence of ours.
func (a *attempt) readOurs(ctx context.Context, fence uint64) []vote[driver.Entry] {
	d := a.d
	return poll(ctx, d, ballot[driver.Entry]{
		nodes:   d.everyone(),
		send:    func(ctx context.Context, i int) (driver.Entry, error) { return d.nodes[i].Inspect(ctx, a.claim.Name) },
		decided: func(v []vote[driver.Entry]) bool { return a.holds(v, fence) >= d.majority },
	})
}

// An other is a claim that stands beside ours on some nodes.
type other struct {
	driver.Holder
	tag
	counts bool
	on     map[int]bool // which nodes have it, or had it at an earlier look
	look   int          // at which it was seen last
}

// beside notes which claims stand on the nodes beside one with this fence, and counts the
// nodes that have the claim itself.
//
// Those with a larger limit that came after it on each node do not count: they come
// beside whoever holds, and a claim that is asked for again must not be refused because
// of them.
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
				seen++ // we are still there
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
