package quorumlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A lease on exactly a majority of the nodes survives nodes that stop answering. It does
// not survive a node that loses it, because its clock jumps or its data is gone: then the
// next claim can get a majority, too. So when a majority has renewed a lease, Renew sends
// a queued claim with its token to the nodes that answered that they lack the lease.
//
// Such a claim does not count for that renewal, and the holder's fence stays. The node
// grants it only if no claim holds the name there and no waiter is ahead, so no other
// claim loses a vote. If a claim without a majority holds the name there, its client
// finds the queued claim, and releases its own (split.go).
//
// A node whose clock is far behind grants the claim with a lower fence than the holder's,
// and so may a node that grants from its queue, or later than the majority. If another
// node of the majority then loses its data, the next fence could be lower. So Renew also
// raises the fence on each node that has the lease, unless it is known to be as high as
// the holder's.
//
// Renew repairs nothing on a node where the lease was broken.

// repairAll repairs, on one node, each renewed lease that the node lacks or may have with
// a lower fence. answers are the node's answers to the batch. renewed says for each lease
// whether a majority has renewed it.
func (d *quorum) repairAll(i int, leases []driver.LeaseRef, answers []error, renewed []bool) {
	var incomplete []driver.LeaseRef
	for k, err := range answers {
		if !renewed[k] || err != nil && !isNoSuchLease(err) {
			continue
		}
		complete := d.holdings.recordAnswer(leases[k], i, err == nil)
		if _, broken := errors.AsType[*driver.BrokenError](err); !complete && !broken {
			incomplete = append(incomplete, leases[k])
		}
	}
	if d.isClosed() {
		return
	}
	var workers sync.WaitGroup
	permits := make(chan struct{}, maxRequestsPerNode)
	for _, l := range incomplete {
		permits <- struct{}{}
		workers.Go(func() {
			d.repair(i, l)
			<-permits
		})
	}
	workers.Wait()
}

var errEnded = errors.New("the lease has ended")

// repair claims a lease on a node that lacks it, raises its fence there, and writes its
// value. The requests are sent in turn with the token's other requests to that node, and
// not at all if the lease was released meanwhile.
func (d *quorum) repair(i int, l driver.LeaseRef) {
	ctx, cancel := context.WithTimeout(d.requestsCtx, min(3*time.Second, max(l.TTL/6, 10*time.Millisecond)))
	defer cancel()
	poll(ctx, d, pollRequest[uint64]{
		nodes: []int{i}, token: l.Token,
		send: func(ctx context.Context, i int) (uint64, error) {
			h, ok := d.holdings.find(l.Token, l.Name)
			if !ok {
				return 0, errEnded
			}
			l.Value = h.claim.Value // the node writes it, unless the lease has already written one there
			switch {
			case slices.Contains(h.lackingNodes, i):
				if _, err := d.sendClaim(ctx, i, h.repairClaim()); err != nil {
					return 0, err
				}
				d.holdings.recordAnswer(l, i, true)
			case slices.Contains(h.confirmedNodes, i): // an earlier repair or a late answer confirmed it
				return h.fence, nil
			case h.claim.Weight != driver.Exclusive:
				l.Value = nil // the node may have a later value, of another holder
			}
			fence, err := d.nodes[i].RaiseFence(ctx, l, h.fence)
			if err == nil {
				d.holdings.recordFence(l, i, fence)
			}
			return fence, err
		},
	})
}

// repairClaim returns the claim to send to a node that lacks the lease.
func (h holding) repairClaim() driver.Claim {
	c := h.claim
	c.Queue, c.Force, c.MinFence, c.ValueBelow = true, false, h.fence, nil
	c.QueueTTL = cmp.Or(c.QueueTTL, c.TTL)
	return c
}
