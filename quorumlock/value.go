package quorumlock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/driver"
)

// The driver writes the value of a name after a majority has granted the claim, and not
// with each node's grant. Otherwise, in a split vote, each claim would leave its value on
// the nodes that it had, and these values could refuse all the claims for ever. But each
// node compares the claim's ValueBelow when it grants.
//
// A single node that cannot raise fences gets the value with the claim.

// writeValue writes the value of a claim that a majority has granted, unless that was
// done before. The claim is granted only if a majority has the value.
//
// A node writes the value once for each lease. So a repeated claim, maybe by another
// client, does not overwrite a later value of the holder.
func (a *attempt) writeValue(ctx context.Context, votes grantVotes, grant driver.Grant) error {
	d := a.d
	if a.claim.Value == nil || d.nodes[0].FenceRaiser == nil {
		return nil
	}
	if h, ok := d.holdings.find(a.claim.Token, a.claim.Name); ok && h.fence == grant.Fence {
		return nil
	}
	nodes := nodesOf(votes, func(v vote[driver.Grant]) bool { return v.err == nil && v.value.Fence == grant.Fence })
	l := a.lease()
	l.Value = a.claim.Value
	written := poll(ctx, d, pollRequest[struct{}]{
		nodes: nodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (struct{}, error) {
			got, err := d.nodes[i].RaiseFence(ctx, l, grant.Fence)
			if err == nil && got != grant.Fence {
				err = fmt.Errorf("the lease has the fence %d there, and not %d", got, grant.Fence)
			}
			return struct{}{}, err
		},
		decided: func(written []vote[struct{}]) bool {
			n := succeeded(written)
			return n >= d.majority || n+len(nodes)-answered(written) < d.majority
		},
	})
	if succeeded(written) >= d.majority {
		return nil
	}
	for i, v := range written {
		if isHeld(v.err) || isNoSuchLease(v.err) {
			written[i].err = errGone
		}
	}
	return failuresErr(ctx, d, "write the value of", a.claim.Name, written)
}

// refusedForValue returns an error if no majority can grant the claim, because on too
// many nodes the value is not below its ValueBelow. The error has the value with the
// highest fence.
//
// A value on a majority refuses each claim with a ValueBelow that is not greater, because
// each majority has a node with that value. A value that a failed claim left on fewer
// nodes refuses no claim, because the other nodes are enough.
func (a *attempt) refusedForValue(votes grantVotes) error {
	var last *driver.ValueNotBelowError
	n := 0
	for _, v := range votes {
		if e, ok := errors.AsType[*driver.ValueNotBelowError](v.err); ok {
			n++
			if last == nil || e.Fence > last.Fence {
				last = e
			}
		}
	}
	if n <= len(a.d.nodes)-a.d.majority {
		return nil
	}
	return &driver.ValueNotBelowError{Name: a.claim.Name, Value: last.Value, Fence: last.Fence}
}

// valueOf merges the values that several nodes show. A majority may have a value if
// enough nodes show it or are silent. Of such values, valueOf returns the one with the
// highest fence.
func (d *quorum) valueOf(entries []driver.Entry) (value []byte, fence uint64) {
	silent := len(d.nodes) - len(entries)
	var best driver.Entry
	bestCount := 0
	for _, e := range entries {
		n := 0
		for _, o := range entries {
			if o.ValueFence == e.ValueFence && bytes.Equal(o.Value, e.Value) {
				n++
			}
		}
		sure, bestSure := n+silent >= d.majority, bestCount+silent >= d.majority
		switch {
		case bestSure && !sure:
		case sure && !bestSure, cmp.Or(cmp.Compare(e.ValueFence, best.ValueFence), cmp.Compare(n, bestCount), bytes.Compare(e.Value, best.Value)) > 0:
			best, bestCount = e, n
		}
	}
	return best.Value, best.ValueFence
}
