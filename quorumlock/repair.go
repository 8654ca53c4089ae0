package quorumlock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A lease that exactly a majority of the nodes has is safe from nodes that fall silent,
// and from nothing else: one of them forgets it, for its clock jumps or its data is gone,
// and the next claim has a majority, too. So when a majority has renewed a lease, the
// nodes that answered that they have not got it are asked for it again, as for a claim
// that queues.
//
// It is no vote for that renewal, and what was shown stays. The node grants it only where
// nobody holds the name and nobody waits ahead, so the vote is taken from nobody; its
// number there is as high as the shown fence, or higher, so fences go on rising. Where a
// claim without a majority holds it, that one sees us waiting behind it, and gives the
// node back (split.go).
//
// Nothing is sent for leases that all nodes have. A lease that was broken on a node stays
// broken there.

// A renewal is a batch under way, and what the nodes have said so far.
type renewal struct {
	d      *Driver
	leases []driver.LeaseRef

	mu      sync.Mutex // protects what follows
	decided bool
	goesOn  []bool          // per lease: a majority has renewed it
	early   map[int][]error // the answers of nodes from before that was known
}

// answered notes what a node said, which may be long after the batch was decided.
func (r *renewal) answered(i int, v vote[[]error]) {
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

// mendLocked asks a node for those that it has not got.
func (r *renewal) mendLocked(i int, said []error) {
	var missing []driver.LeaseRef
	for k, err := range said {
		_, broken := errors.AsType[*driver.BrokenError](err)
		lacks := errors.Is(err, driver.ErrNotHeld)
		if r.goesOn[k] && (lacks || err == nil) {
			r.d.held.answered(r.leases[k], i, !lacks)
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
		for range min(abreast, len(missing)) {
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

// repair asks one node for a lease that it has not got. It waits for its turn among the
// requests of the token there; if the lease was released meanwhile, it is not sent.
func (d *Driver) repair(i int, l driver.LeaseRef) {
	ctx, cancel := context.WithTimeout(d.life, min(3*time.Second, max(l.TTL/6, 10*time.Millisecond)))
	defer cancel()
	poll(ctx, d, ballot[driver.Grant]{
		nodes: []int{i}, token: l.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			h, ok := d.held.find(l.Token, l.Name)
			if !ok {
				return driver.Grant{}, errOver
			}
			grant, err := d.ask(ctx, i, h.again())
			if err == nil {
				d.held.answered(l, i, true)
			}
			if err == nil && h.claim.Value != nil {
				l.Value = h.claim.Value
				_ = d.writeFirst(ctx, i, l, h.fence) // a majority has it in any case
			}
			return grant, err
		},
		decided: func(votes []vote[driver.Grant]) bool { return answered(votes) == 1 },
	})
}

// again is the claim of a lease, for a node that has not got it.
func (h holding) again() driver.Claim {
	c := h.claim
	c.Queue, c.Force, c.Fences, c.MinFence, c.Above = true, false, 0, h.fence, nil
	c.QueueTTL = cmp.Or(c.QueueTTL, c.TTL)
	return c
}
