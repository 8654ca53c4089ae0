package quorumlock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/quorumlock"
)

// Several clients force a name at once, and their requests arrive at the nodes in
// different orders, so each of them may be granted on every node, one after the other.
// Each granted claim has held a majority at one instant, and the last, with the highest
// fence, has the name in the end.
func TestForcedClaimsAtOnceEachHaveAMajorityInTurn(t *testing.T) {
	const clients, jitter = 3, 10 * time.Millisecond
	for _, nodes := range []int{3, 4, 5} {
		for range 100 {
			bubble.Test(t, func(t *testing.T) {
				servers := newCluster(nodes)
				servers[1].skew = time.Millisecond
				var mu sync.Mutex
				hadMajority := map[string]bool{} // the claims that have held a majority
				recordMajority := func() {
					mu.Lock()
					defer mu.Unlock()
					count := map[string]int{}
					for _, s := range servers {
						e, _ := s.memory.Driver().Inspect(t.Context(), "jobs")
						for _, h := range e.Holders {
							if count[h.Owner.Host]++; count[h.Owner.Host] > nodes/2 {
								hadMajority[h.Owner.Host] = true
							}
						}
					}
				}
				for _, s := range servers {
					s.afterRequest = recordMajority
				}
				old, _ := servers.client(t, time.Millisecond)
				mustAcquire(t, old, mutex("jobs"))

				fences := make([]uint64, clients)
				claims := make([]driver.Claim, clients)
				drivers := make([]driver.Driver, clients)
				var all sync.WaitGroup
				for i := range clients {
					// The grace is long: otherwise requests of a granted claim that are
					// still under way might arrive after all others.
					d, lines := servers.clientWith(t, &quorumlock.Options{Grace: time.Second}, 0)
					for _, l := range lines {
						l.jitter.Store(int64(jitter))
					}
					claims[i], drivers[i] = mutex("jobs"), d
					claims[i].Force, claims[i].Owner.Host = true, strconv.Itoa(i)
					all.Go(func() {
						g, err := d.Acquire(t.Context(), claims[i])
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							t.Errorf("Acquire: %v", err)
						} else if !hadMajority[strconv.Itoa(i)] {
							t.Errorf("%d was granted the fence %d, but never had a majority", i, g.Fence)
						}
						fences[i] = g.Fence
					})
				}
				all.Wait()
				last := slices.Index(fences, slices.Max(fences))
				for i, d := range drivers {
					answers, err := d.Renew(t.Context(), []driver.LeaseRef{lease(claims[i])})
					if err != nil || (answers[0] == nil) != (i == last) {
						t.Errorf("Renew by %d: %v, %v; the fences are %d", i, answers, err, fences)
					}
				}
			})
		}
	}
}

// A queueingNode queues a forced claim, against the contract. The first Inspect returns
// an empty entry.
type queueingNode struct {
	*line
	inspected atomic.Bool
}

func (p *queueingNode) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Force = false
	return p.line.Acquire(ctx, c)
}

func (p *queueingNode) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if !p.inspected.Swap(true) {
		return driver.Entry{Name: name}, nil
	}
	return p.line.Inspect(ctx, name)
}

// Signals grant a queued forced claim, but Inspect does not return it. Then the claim is
// sent to the nodes again, and granted.
func TestAForcedClaimThatSignalsGrantIsSentAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, _ := servers.client(t)
		var nodes []driver.Driver
		for _, s := range servers {
			nodes = append(nodes, &queueingNode{line: s.connect(time.Millisecond)})
		}
		two := quorumOf(t, nil, nodes...)
		signals := servertest.Listen(t, two)
		holder, forced := mutex("jobs"), queued(mutex("jobs"))
		forced.Force = true
		mustAcquire(t, one, holder)
		wantHeld(t, two, forced)
		mustRelease(t, one, holder)
		if s := <-signals; s.Kind != driver.SignalGranted {
			t.Errorf("signal %+v, want a grant", s)
		}
	})
}
