package quorumlock

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Release implements driver.Driver. It releases on all nodes, and needs a majority of all
// nodes, not of the nodes that granted. It returns nil if the token held or waited on a
// majority. It returns ErrNoSuchLease if so many nodes lack the token that it can have no
// majority. A node that lost the lease, and has only a place for it (repair.go), counts
// as a node that lacks it. Without HasEnd or a Value, the driver repeats unanswered
// releases in the background, for releaseRetryTime.
func (d *quorum) Release(ctx context.Context, l driver.LeaseRef) error {
	err := d.beginOperation(ctx, driver.ValidateName(l.Name), driver.ValidateDelay("minimum hold", l.MinHold), driver.ValidateValue(l.Value))
	if err != nil {
		return err
	}
	defer d.work.Done()
	l.Value, l.HasEnd = bytes.Clone(l.Value), l.HasEnd || l.Value != nil
	l.TTL = releaseRetryTime
	d.places.leave(l.Token, l.Name)
	lease := d.holdings.remove(l.Token, l.Name)
	votes := poll(ctx, d, pollRequest[struct{}]{
		nodes: d.allNodes, token: l.Token,
		send: func(ctx context.Context, i int) (struct{}, error) {
			err := d.releaseOnNode(ctx, i, l, l.HasEnd)
			if err == nil && slices.Contains(lease.lackingNodes, i) {
				err = driver.ErrNoSuchLease // the node has released only a place
			}
			return struct{}{}, err
		},
		decided: func(votes []vote[struct{}]) bool { return succeeded(votes) >= d.majority || d.lacksMajority(votes) },
		onUnsent: func(i int) {
			if !l.HasEnd {
				d.pending.release(i, l)
			}
		},
	})
	switch {
	case succeeded(votes) >= d.majority:
		return nil
	case d.lacksMajority(votes):
		return d.notHeld(votes)
	}
	return failuresErr(ctx, d, "release", l.Name, votes)
}

// releaseRetryTime is the time for which a release is repeated on a node that cannot be
// reached: the default TTL, after which most leases have ended there by themselves.
const releaseRetryTime = 30 * time.Second

// releaseOnNode releases on one node. If the node does not answer, or an Acquire may
// still arrive there, the driver repeats the release in the background, for l.TTL. With
// claimContinues, the caller handles a missing answer instead, and may claim again.
func (d *quorum) releaseOnNode(ctx context.Context, i int, l driver.LeaseRef, claimContinues bool) error {
	end := driver.End(ctx)
	err := d.nodes[i].Release(ctx, l)
	d.pending.recordRelease(i, l, end, err, claimContinues && !isFinal(err))
	return err
}

// isFinal reports whether the answer is final, so that another release is not needed.
func isFinal(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return err == nil || isRefusal(err) || isNoSuchLease(err) || errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrInvalid) || ok && e.Permanent
}

// releaseFailedClaim releases a failed claim's grants on some nodes. It waits only for
// nodes that answer quickly, and no longer than ctx. The caller may claim again with the
// token.
func (d *quorum) releaseFailedClaim(ctx context.Context, l driver.LeaseRef, nodes []int) {
	l.HasEnd = true
	poll(ctx, d, pollRequest[struct{}]{
		nodes: nodes, token: l.Token, timeout: min(backgroundRequestLimit, max(l.TTL/6, 10*time.Millisecond)),
		send: func(ctx context.Context, i int) (struct{}, error) {
			return struct{}{}, d.releaseOnNode(ctx, i, l, false)
		},
		decided:  func([]vote[struct{}]) bool { return true },
		onUnsent: func(i int) { d.pending.release(i, l) },
	})
}

// lacksMajority reports whether so many nodes answered "no such lease" that the token can
// have no majority.
func (d *quorum) lacksMajority(votes []vote[struct{}]) bool {
	return count(votes, isNoSuchLease) > len(d.nodes)-d.majority
}

// notHeld returns the error if lacksMajority is true. It names the owner that broke the
// lease, if any node knows that. The name stays closed until it is open on a majority of
// the nodes. A node without an answer counts as open.
func (d *quorum) notHeld(votes []vote[struct{}]) error {
	var by *driver.Owner
	closed := make([]time.Duration, len(votes))
	for i, v := range votes {
		if b, ok := errors.AsType[*driver.BrokenError](v.err); ok {
			_, owner := untag(b.By)
			by, closed[i] = &owner, b.ClosedFor
		}
	}
	if by == nil {
		return driver.ErrNoSuchLease
	}
	return &driver.BrokenError{By: *by, ClosedFor: nthSmallest(d.majority, closed)}
}
