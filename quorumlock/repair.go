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
// claim loses a vote. The fence on that node is the holder's fence or higher, so fences
// keep rising. If a claim without a majority holds the name there, its client finds the
// queued claim, and releases its own (split.go).
//
// Renew repairs nothing on a node where the lease was broken.

// A renewal is a batch under way, and the answers of the nodes so far.
type renewal struct {
	d      *quorum
	leases []driver.LeaseRef

	mu      sync.Mutex // protects the fields below
	decided bool
	goesOn  []bool          // per lease: a majority has renewed it
	early   map[int][]error // the answers that arrived before the batch was decided
}

// noteAnswer records the answer of a node, maybe long after the batch was decided.
func (r *renewal) noteAnswer(i int, v vote[[]error]) {
	if v.err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.decided {
		r.early[i] = v.value
		return
	}
	r.mendLocked(i, v.value)
}

// decide records which of the leases a majority has renewed.
func (r *renewal) decide(answers []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided, r.goesOn = true, make([]bool, len(answers))
	for k, err := range answers {
		r.goesOn[k] = err == nil
	}
	for i, said := range r.early {
		r.mendLocked(i, said)
	}
	r.early = nil
}

// mendLocked repairs on a node the leases that the node lacks.
func (r *renewal) mendLocked(i int, said []error) {
	var missing []driver.LeaseRef
	for k, err := range said {
		_, broken := errors.AsType[*driver.BrokenError](err)
		lacks := isNoSuchLease(err)
		if r.goesOn[k] && (lacks || err == nil) {
			r.d.held.noteAnswer(r.leases[k], i, !lacks)
		}
		if r.goesOn[k] && lacks && !broken {
			missing = append(missing, r.leases[k])
		}
	}
	if len(missing) == 0 || r.d.begin(r.d.life) != nil {
		return
	}
	go func() {
		defer r.d.work.Done()
		var workers sync.WaitGroup
		next := make(chan driver.LeaseRef, len(missing))
		for _, l := range missing {
			next <- l
		}
		close(next)
		for range min(releasesAtOnce, len(missing)) {
			workers.Go(func() {
				for l := range next {
					r.d.repair(i, l)
				}
			})
		}
		workers.Wait()
	}()
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
	c.Queue, c.Force, c.Fences, c.MinFence, c.Above = true, false, 0, h.fence, nil
	c.QueueTTL = cmp.Or(c.QueueTTL, c.TTL)
	return c
}
