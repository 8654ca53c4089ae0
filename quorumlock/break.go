package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break implements driver.LeaseBreaker, if every node can break. A majority knows the
// lease by the fence that its holder has. Other nodes may have granted the same claim
// with another fence. So Break first reads the nodes, to find the claim with this fence,
// and then breaks it on each node by its fence there.
//
// The name is closed on those nodes, which are a majority. The other nodes may grant it,
// and that is not enough.
func (d *quorum) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	if err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate()); err != nil {
		return err
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.work.Done()
	for _, n := range d.nodes {
		if _, ok := driver.As[driver.LeaseBreaker](n.Driver); !ok {
			return fmt.Errorf("quorumlock: node %d cannot break a lease: %w", n.number, errors.ErrUnsupported)
		}
	}
	entries := d.read(ctx, name, d.everyone())
	if succeeded(entries) < d.majority {
		return trouble(ctx, d, "break", name, entries)
	}
	fences, sure := d.claimWithFence(entries, fence)
	if !sure {
		return trouble(ctx, d, "break", name, entries)
	}
	nobody := fences == nil
	if nobody {
		fences = map[int]uint64{}
	}
	for i, v := range entries {
		switch {
		case nobody:
			// These nodes break a fence that no lease ever has, because each step on a
			// name also removes what has expired, and passes the name on.
			fences[i] = 0
		case !v.in || v.err != nil:
			fences[i] = fence // its entry could not be read: most likely the fence is the same there
		}
	}
	var nodes []int
	for i := range fences {
		nodes = append(nodes, i)
	}
	votes := poll(ctx, d, ballot[struct{}]{
		nodes: nodes,
		send: func(ctx context.Context, i int) (struct{}, error) {
			b, _ := driver.As[driver.LeaseBreaker](d.nodes[i].Driver) // checked above
			return struct{}{}, b.Break(ctx, name, fences[i], delay, by)
		},
		decided: func(votes []vote[struct{}]) bool {
			return succeeded(votes) >= d.majority || answered(votes) == len(nodes)
		},
	})
	gone := len(d.nodes) - len(nodes)
	for _, v := range votes {
		if errors.Is(v.err, driver.ErrNoSuchLease) {
			gone++
		}
	}
	switch {
	case succeeded(votes) >= d.majority:
		return nil
	case gone > len(d.nodes)-d.majority && succeeded(votes) == 0:
		return driver.ErrNoSuchLease // the lease ended in the meantime
	case succeeded(votes)+gone >= d.majority && succeeded(votes) > 0:
		return nil // the lease was ending, and has no majority now
	}
	return trouble(ctx, d, "break", name, votes)
}

// claimWithFence finds the claim with this fence, and its fence on each node; nil if no
// majority can have it. sure is false if the silent nodes would decide between the holder
// that was shown this fence and the next one.
func (d *quorum) claimWithFence(entries []vote[driver.Entry], fence uint64) (fences map[int]uint64, sure bool) {
	type claim struct {
		fences map[int]uint64
		higher map[uint64]int // how many nodes have it with this fence, which is higher than the one asked for
		named  int            // how many nodes have it with the fence that was asked for
	}
	claims := map[key]*claim{}
	silent := 0
	for i, v := range entries {
		if !v.in || v.err != nil {
			silent++
			continue
		}
		ks := keys{}
		for _, h := range v.value.Holders {
			t, _ := untag(h.Owner)
			k := ks.next(t)
			c := claims[k]
			if c == nil {
				c = &claim{fences: map[int]uint64{}, higher: map[uint64]int{}}
				claims[k] = c
			}
			c.fences[i] = h.Fence
			// An entry does not show ranges. Only an exclusive holder has one, and then
			// no claim was granted since.
			if h.Fence == fence || h.Permits == driver.Exclusive && h.Fence < fence && fence <= v.value.Fence {
				c.named++
			} else if h.Fence > fence {
				c.higher[h.Fence]++
			}
		}
	}
	sure = true
	for _, c := range claims {
		if c.named == 0 || len(c.fences)+silent < d.majority {
			continue
		}
		// A repaired node has a higher fence for the same holder: its own time. The next
		// holder has one higher fence on a majority, and may have the wanted fence on
		// a node that granted the earlier holder another one.
		agreed := 0
		for _, n := range c.higher {
			agreed = max(agreed, n)
		}
		switch {
		case c.named >= d.majority, agreed == 0, agreed+silent < d.majority:
			return c.fences, true
		case agreed < d.majority:
			sure = false
		}
	}
	return nil, sure
}
