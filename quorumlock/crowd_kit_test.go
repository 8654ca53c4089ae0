package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A crowdTest has several clients that claim one name over lines with random delays, so
// that their claims arrive at the nodes in different orders and split the vote.
type crowdTest struct {
	t          *testing.T
	mu         sync.Mutex
	holders    int // at the moment
	maxHolders int
	lastFence  uint64
	fenceFell  bool
	waits      []time.Duration
	servers    cluster
	lines      [][]*line
}

func newCrowd(t *testing.T, nodes, clients int, jitter time.Duration) (*crowdTest, []*pawl.Client) {
	crowd := &crowdTest{t: t, servers: newCluster(nodes)}
	var all []*pawl.Client
	for range clients {
		d, lines := crowd.servers.client(t, time.Millisecond)
		for _, l := range lines {
			l.jitter.Store(int64(jitter))
		}
		c, err := pawl.New(d, &pawl.Options{HandoffWindow: -1})
		noError(t, err)
		crowd.lines = append(crowd.lines, lines)
		all = append(all, c)
	}
	return crowd, all
}

// takeTurns makes each client hold the name in each round, and returns how long that
// took.
func (crowd *crowdTest) takeTurns(ctx context.Context, all []*pawl.Client, rounds int, work time.Duration) time.Duration {
	began := time.Now()
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(func() {
			for range rounds {
				asked := time.Now()
				l, err := c.Mutex("jobs").Lock(ctx)
				if err != nil {
					crowd.t.Errorf("Lock: %v", err)
					return
				}
				crowd.work(l, time.Since(asked), work)
				if err := l.Release(context.WithoutCancel(ctx)); err != nil {
					crowd.t.Errorf("Release: %v", err)
				}
			}
		})
	}
	done.Wait()
	return time.Since(began)
}

// work does a turn of a client that holds a lease.
func (crowd *crowdTest) work(l *pawl.Lease, waited, duration time.Duration) {
	crowd.mu.Lock()
	crowd.holders++
	crowd.maxHolders = max(crowd.maxHolders, crowd.holders)
	crowd.fenceFell = crowd.fenceFell || l.Fence() <= crowd.lastFence
	crowd.lastFence = max(crowd.lastFence, l.Fence())
	crowd.waits = append(crowd.waits, waited)
	crowd.mu.Unlock()
	time.Sleep(duration)
	crowd.mu.Lock()
	crowd.holders--
	crowd.mu.Unlock()
}

func (crowd *crowdTest) close(clients []*pawl.Client) {
	for _, c := range clients {
		if err := c.Close(); err != nil {
			crowd.t.Error(err)
		}
	}
	time.Sleep(time.Minute) // late requests arrive
	crowd.servers.wantNothingKept(crowd.t, "jobs")
}
