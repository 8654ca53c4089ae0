package quorumlock

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break implements driver.LeaseBreaker, if every node can break. On a majority, the lease
// has the fence that its holder got. Other nodes may have granted the same claim with
// another fence. So Break first reads the nodes, to find the claim with this fence. Then
// it breaks the claim on each node, with the claim's fence there.
//
// Break closes the name on a majority of the nodes, unless the lease was ending by
// itself. The other nodes may grant the name, but they are too few.
func (d *quorum) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	if err := d.beginOperation(ctx, driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate()); err != nil {
		return err
	}
	defer d.work.Done()
	breakers, err := abilities[driver.LeaseBreaker](d, "break a lease")
	if err != nil {
		return err
	}
	entries := d.readEntries(ctx, name, d.hasMajority)
	if succeeded(entries) < d.majority {
		return failuresErr(ctx, d, "break", name, entries)
	}
	fences, sure := d.claimWithFence(entries, fence)
	if !sure {
		return failuresErr(ctx, d, "break", name, entries)
	}
	noHolder := fences == nil
	if noHolder {
		fences = map[int]uint64{}
	}
	for i, v := range entries {
		switch {
		case noHolder:
			// No lease has the fence 0, so this breaks nothing. But each step on a name
			// also removes expired leases, and grants to waiters.
			fences[i] = 0
		case v.err != nil:
			fences[i] = fence // the node's entry could not be read; the fence there is most likely the same
		}
	}
	nodes := slices.Collect(maps.Keys(fences))
	votes := poll(ctx, d, pollRequest[struct{}]{
		nodes: nodes,
		send: func(ctx context.Context, i int) (struct{}, error) {
			return struct{}{}, breakers[i].Break(ctx, name, fences[i], delay, by)
		},
		decided: func(votes []vote[struct{}]) bool {
			return succeeded(votes) >= d.majority || answered(votes) == len(nodes)
		},
	})
	lacking := len(d.nodes) - len(nodes) + count(votes, isNoSuchLease)
	switch {
	case succeeded(votes) >= d.majority:
		return nil
	case lacking > len(d.nodes)-d.majority && succeeded(votes) == 0:
		return driver.ErrNoSuchLease // the lease ended in the meantime
	case succeeded(votes)+lacking >= d.majority && succeeded(votes) > 0:
		return nil // the lease was ending, and has no majority now
	}
	return failuresErr(ctx, d, "break", name, votes)
}

// claimWithFence finds the claim with this fence, and returns its fence on each node, or
// nil if no majority can have the claim. sure is false if the silent nodes decide whether
// the claim with this fence still holds, or the next one does.
func (d *quorum) claimWithFence(entries []vote[driver.Entry], fence uint64) (_ map[int]uint64, sure bool) {
	silent := len(entries) - succeeded(entries)
	sure = true
	for _, s := range groupByClaim(entries) {
		fences := map[int]uint64{}
		higher := map[uint64]int{} // for each fence above the wanted one: the number of nodes where the claim has it
		matches := 0               // the number of nodes where the claim has the wanted fence
		for _, h := range s.holders {
			fences[h.node] = h.Fence
			// An entry does not show ranges. Only an exclusive holder has a range, which
			// ends at the entry's last fence, because no claim was granted since.
			if h.Fence == fence || h.Permits == driver.Exclusive && h.Fence < fence && fence <= entries[h.node].value.Fence {
				matches++
			} else if h.Fence > fence {
				higher[h.Fence]++
			}
		}
		if matches == 0 || len(fences)+silent < d.majority {
			continue
		}
		// A repaired node may have a higher fence for the same holder: the node's own
		// time. The next holder has the same higher fence on a majority. It may have the
		// wanted fence on a node that granted the earlier holder another fence.
		mostOnHigher := 0
		for _, n := range higher {
			mostOnHigher = max(mostOnHigher, n)
		}
		switch {
		case matches >= d.majority, mostOnHigher == 0, mostOnHigher+silent < d.majority:
			return fences, true
		case mostOnHigher < d.majority:
			sure = false
		}
	}
	return nil, sure
}
