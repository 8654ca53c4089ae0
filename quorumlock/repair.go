package quorumlock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A lease on exactly a majority of the nodes survives nodes that fall silent. It does not
// survive a node that forgets it, because its clock jumps or its data is gone: then the
// next claim has a majority, too. So when a majority has renewed a lease, Renew claims it
// again, as a waiter does, on the nodes that answered that they lack it.
//
// Such a claim is no vote for that renewal, and the holder's fence stays. The node grants
// it only if no claim holds the name there and no waiter is ahead, so no other claim
// loses a vote. The fence on that node is the holder's fence or higher, so fences keep
// rising. If a claim without a majority holds the name there, its client sees us waiting,
// and gives the node back (split.go).
//
// Renew sends nothing for leases that all nodes have. A lease that was broken on a node
// stays broken there.

// A renewal is a batch under way, and the answers of the nodes so far.
type renewal struct {
	d      *quorum
	leases []driver.LeaseRef

	mu      sync.Mutex // protects what follows
	decided bool
	goesOn  []bool          // per lease: a majority has renewed it
	early   map[int][]error // the answers of nodes from before the batch was decided
}

// noteAnswer notes the answer of a node, perhaps long after the batch was decided.
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

// decide notes which of the leases go on.
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
		lacks := errors.Is(err, driver.ErrNoSuchLease)
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

// repair claims a lease on a node that lacks it. The claim waits for its turn among the
// requests of the token there, and is not sent if the lease was released meanwhile.
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
				_ = d.writeFirst(ctx, i, l, h.fence) // a majority has the value in any case
			}
			return grant, err
		},
		decided: func(votes []vote[driver.Grant]) bool { return answered(votes) == 1 },
	})
}

// repairClaim returns the claim of a lease, for a node that lacks the lease.
func (h holding) repairClaim() driver.Claim {
	c := h.claim
	c.Queue, c.Force, c.Fences, c.MinFence, c.Above = true, false, 0, h.fence, nil
	c.QueueTTL = cmp.Or(c.QueueTTL, c.TTL)
	return c
}
