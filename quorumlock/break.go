package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break implements driver.LeaseBreaker, if every node can break. A majority knows the
// lease by the fence that its holder was shown; a node beside it may have granted the
// same claim with another one. So the nodes are read first, to find whose the fence is,
// and then each is told the fence that this holder has there.
//
// The name is closed on those nodes, which are a majority: the others may grant it, and
// that is not enough.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
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
	fences, sure := d.whose(entries, fence)
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
			// They are told to break what nobody ever holds, for each step on a name also
			// removes what has expired, and passes the name on.
			fences[i] = 0
		case !v.in || v.err != nil:
			fences[i] = fence // its entry could not be read: most likely it has the same
		}
	}
	var nodes []int
	for i := range fences {
		nodes = append(nodes, i)
	}
	votes := poll(ctx, d, ballot[struct{}]{
		nodes: nodes,
		send: func(ctx context.Context, i int) (struct{}, error) {
			b, _ := driver.As[driver.LeaseBreaker](d.nodes[i].Driver) // looked at above
			return struct{}{}, b.Break(ctx, name, fences[i], delay, by)
		},
		decided: func(votes []vote[struct{}]) bool {
			return succeeded(votes) >= d.majority || answered(votes) == len(nodes)
		},
	})
	gone := len(d.nodes) - len(nodes)
	for _, v := range votes {
		if errors.Is(v.err, driver.ErrNotHeld) {
			gone++
		}
	}
	switch {
	case succeeded(votes) >= d.majority:
		return nil
	case gone > len(d.nodes)-d.majority && succeeded(votes) == 0:
		return driver.ErrNotHeld // it ended in the meantime
	case succeeded(votes)+gone >= d.majority && succeeded(votes) > 0:
		return nil // it was on its way out, and has no majority now
	}
	return trouble(ctx, d, "break", name, votes)
}

// whose finds the claim whose fence this is, and the fence that it has on each node; nil
// if no majority can have it. It is not sure where the nodes that are silent would decide
// between the holder that was shown this fence and the next one.
func (d *Driver) whose(entries []vote[driver.Entry], fence uint64) (fences map[int]uint64, sure bool) {
	type claim struct {
		fences map[int]uint64
		higher map[uint64]int // how many nodes have it with this fence, higher than that asked for
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
			// A range is no part of an entry. Only who holds alone has one, and then
			// nobody was granted since.
			if h.Fence == fence || h.Weight == driver.Exclusive && h.Fence < fence && fence <= v.value.Fence {
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
		// A node that was repaired has a higher number, its own time. The next holder
		// has one higher number on a majority, and may have this one on a node where
		// the holder before was not shown it.
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
