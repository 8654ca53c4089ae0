package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A crowd is several clients that claim one name over lines with random delays, so that
// their claims arrive at the nodes in different orders and split the vote.
type crowd struct {
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

func newCrowd(t *testing.T, nodes, clients int, jitter time.Duration) (*crowd, []*pawl.Client) {
	w := &crowd{t: t, servers: newCluster(nodes)}
	var all []*pawl.Client
	for range clients {
		d, lines := w.servers.client(t, time.Millisecond)
		for _, l := range lines {
			l.jitter.Store(int64(jitter))
		}
		c, err := pawl.New(d, &pawl.Options{HandoffWindow: -1})
		noError(t, err)
		w.lines = append(w.lines, lines)
		all = append(all, c)
	}
	return w, all
}

// takeTurns makes each client hold the name in each round, and returns how long that
// took.
func (w *crowd) takeTurns(ctx context.Context, all []*pawl.Client, rounds int, work time.Duration) time.Duration {
	began := time.Now()
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(func() {
			for range rounds {
				asked := time.Now()
				l, err := c.Mutex("jobs").Lock(ctx)
				if err != nil {
					w.t.Errorf("Lock: %v", err)
					return
				}
				w.work(l, time.Since(asked), work)
				if err := l.Release(context.WithoutCancel(ctx)); err != nil {
					w.t.Errorf("Release: %v", err)
				}
			}
		})
	}
	done.Wait()
	return time.Since(began)
}

// work does a turn of a client that holds a lease.
func (w *crowd) work(l *pawl.Lease, waited, duration time.Duration) {
	w.mu.Lock()
	w.holders++
	w.maxHolders = max(w.maxHolders, w.holders)
	w.fenceFell = w.fenceFell || l.Fence() <= w.lastFence
	w.lastFence = max(w.lastFence, l.Fence())
	w.waits = append(w.waits, waited)
	w.mu.Unlock()
	time.Sleep(duration)
	w.mu.Lock()
	w.holders--
	w.mu.Unlock()
}

func (w *crowd) close(clients []*pawl.Client) {
	for _, c := range clients {
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	}
	time.Sleep(time.Minute) // late requests arrive
	w.servers.wantNothingKept(w.t, "jobs")
}
