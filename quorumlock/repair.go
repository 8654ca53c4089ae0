package quorumlock

import (
	"cmp"
	"context"
	"errors"
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
// claim loses a vote. The fence on that node is the holder's fence or higher, unless the
// node's clock is more than driver.MaxLead behind that fence. So fences keep rising. If a
// claim without a majority holds the name there, its client finds the queued claim, and
// releases its own (split.go).
//
// Renew repairs nothing on a node where the lease was broken.

// mend repairs on a node the renewed leases that the node lacks, according to its answers
// to a batch. renewed says for each lease whether a majority has renewed it.
func (d *quorum) mend(i int, leases []driver.LeaseRef, answers []error, renewed []bool) {
	var missing []driver.LeaseRef
	for k, err := range answers {
		if !renewed[k] || err != nil && !isNoSuchLease(err) {
			continue
		}
		d.held.noteAnswer(leases[k], i, err == nil)
		if _, broken := errors.AsType[*driver.BrokenError](err); err != nil && !broken {
			missing = append(missing, leases[k])
		}
	}
	if d.isClosed() {
		return
	}
	var workers sync.WaitGroup
	room := make(chan struct{}, releasesAtOnce)
	for _, l := range missing {
		room <- struct{}{}
		workers.Go(func() {
			d.repair(i, l)
			<-room
		})
	}
	workers.Wait()
}

var errOver = errors.New("the lease is over")

// repair claims a lease on a node that lacks it. The claim is sent in turn with the
// token's other requests to that node, and not at all if the lease was released
// meanwhile.
func (d *quorum) repair(i int, l driver.LeaseRef) {
	ctx, cancel := context.WithTimeout(d.life, min(3*time.Second, max(l.TTL/6, 10*time.Millisecond)))
	defer cancel()
	poll(ctx, d, ballot[driver.Grant]{
		nodes: []int{i}, token: l.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			h, ok := d.held.find(l.Token, l.Name)
			if !ok {
				return driver.Grant{}, errOver
			}
			grant, err := d.ask(ctx, i, h.repairClaim())
			if err == nil {
				d.held.noteAnswer(l, i, true)
			}
			if err == nil && h.claim.Value != nil {
				l.Value = h.claim.Value
				_ = d.writeFirst(ctx, i, l, h.fence) // an error does not matter, because a majority has the value
			}
			return grant, err
		},
		decided: func(votes []vote[driver.Grant]) bool { return answered(votes) == 1 },
	})
}

// repairClaim returns the claim to send to a node that lacks the lease.
func (h holding) repairClaim() driver.Claim {
	c := h.claim
	c.Queue, c.Force, c.Fences, c.MinFence, c.ValueBelow = true, false, 0, h.fence, nil
	c.QueueTTL = cmp.Or(c.QueueTTL, c.TTL)
	return c
}
