package quorumlock

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Release implements driver.Driver. It tells all nodes, and counts a majority of all of
// them, not of those that granted: nil if the token held or waited on a majority,
// ErrNotHeld if it did not on so many that there is no majority. For a lease only nodes
// that have it count, not those where it waits since they forgot it (repair.go). A node
// that could not be told is told again in the background, for as long as that makes
// sense.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("minimum hold", l.MinHold), driver.ValidateValue(l.Value))
	if err != nil {
		return err
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.work.Done()
	l.Value, l.OnTime = bytes.Clone(l.Value), l.OnTime || l.Value != nil
	d.placed.leave(l.Token, l.Name)
	lease, _ := d.held.find(l.Token, l.Name)
	d.held.over(l.Token, l.Name)
	votes := poll(ctx, d, ballot[struct{}]{
		nodes: d.everyone(), token: l.Token,
		send: func(ctx context.Context, i int) (struct{}, error) {
			err := d.giveBack(ctx, i, l, releaseFor, l.OnTime)
			if err == nil && slices.Contains(lease.lacks, i) {
				err = driver.ErrNotHeld // it was a place
			}
			return struct{}{}, err
		},
		decided: func(votes []vote[struct{}]) bool { return succeeded(votes) >= d.majority || d.lacks(votes) },
		unsent: func(i int) {
			if !l.OnTime {
				d.owed.owes(at(i, l), l, releaseFor)
			}
		},
	})
	switch {
	case succeeded(votes) >= d.majority:
		return nil
	case d.lacks(votes):
		return d.notHeld(votes)
	}
	return trouble(ctx, d, "release", l.Name, votes)
}

// releaseFor is how long a node that cannot be reached is told of a release again and
// again: the default TTL, after which most leases have ended there by themselves.
const releaseFor = 30 * time.Second

// giveBack releases on one node. What the node could not be told, or has to be told once
// more because an Acquire may yet arrive there, goes on in the background; but the caller
// of a release that goesOn may claim again, and asks by itself.
func (d *Driver) giveBack(ctx context.Context, i int, l driver.LeaseRef, ttl time.Duration, goesOn bool) error {
	end := driver.End(ctx)
	err := d.nodes[i].Release(ctx, l)
	d.owed.released(at(i, l), l, ttl, end, err, goesOn && !told(err))
	return err
}

func at(i int, l driver.LeaseRef) dueAt { return dueAt{i, l.Token, l.Name} }

// told reports whether there is no use in telling it again.
func told(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return err == nil || isRefusal(err) || errors.Is(err, driver.ErrNotHeld) || errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrInvalid) || ok && e.Permanent
}

// free releases on some nodes what nobody was told of, and waits only for those that
// answer quickly, and no longer than ctx. The token may be claimed again.
func (d *Driver) free(ctx context.Context, l driver.LeaseRef, nodes []int, ttl time.Duration) {
	l.OnTime = true
	poll(ctx, d, ballot[struct{}]{
		nodes: nodes, token: l.Token, lasts: min(straggle, max(ttl/6, 10*time.Millisecond)),
		send: func(ctx context.Context, i int) (struct{}, error) {
			return struct{}{}, d.giveBack(ctx, i, l, ttl, false)
		},
		decided: func([]vote[struct{}]) bool { return true },
		unsent:  func(i int) { d.owed.owes(at(i, l), l, ttl) },
	})
}

// lacks reports whether so many nodes say that the token holds nothing that there can be
// no majority on which it does.
func (d *Driver) lacks(votes []vote[struct{}]) bool {
	n := 0
	for _, v := range votes {
		if errors.Is(v.err, driver.ErrNotHeld) {
			n++
		}
	}
	return n > len(d.nodes)-d.majority
}

// notHeld is the answer then. The breaker is known if any node knows it. The name
// stays closed until so many nodes are open that they are a majority; one that has not
// answered may be open.
func (d *Driver) notHeld(votes []vote[struct{}]) error {
	var by *driver.Owner
	closed := make([]time.Duration, len(votes))
	for i, v := range votes {
		if b, ok := errors.AsType[*driver.BrokenError](v.err); ok {
			_, owner := untag(b.By)
			by, closed[i] = &owner, b.ClosedFor
		}
	}
	if by == nil {
		return driver.ErrNotHeld
	}
	return &driver.BrokenError{By: *by, ClosedFor: nth(d.majority, closed)}
}
