package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// crowd is several clients of one cluster that all want one name, over lines whose delays
// are different for each request, so that their claims come to the nodes in different
// orders and split the vote.
type crowd struct {
	t       *testing.T
	mu      sync.Mutex
	inside  int
	most    int // inside at once
	last    uint64
	fell    bool
	waits   []time.Duration
	rounds  []int // per client
	servers cluster
	lines   [][]*line
}

func newCrowd(t *testing.T, nodes, clients int, jitter time.Duration) (*crowd, []*pawl.Client) {
	w := &crowd{t: t, servers: newCluster(nodes), rounds: make([]int, clients)}
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

// takeTurns has each client hold the name so many times, and returns how long that took.
func (w *crowd) takeTurns(ctx context.Context, all []*pawl.Client, rounds int, work time.Duration) time.Duration {
	began := time.Now()
	var done sync.WaitGroup
	for i, c := range all {
		done.Go(func() {
			for range rounds {
				asked := time.Now()
				l, err := c.Mutex("jobs").Lock(ctx)
				if err != nil {
					w.t.Errorf("Lock: %v", err)
					return
				}
				w.work(i, l, time.Since(asked), work)
				if err := l.Release(context.WithoutCancel(ctx)); err != nil {
					w.t.Errorf("Release: %v", err)
				}
			}
		})
	}
	done.Wait()
	return time.Since(began)
}

// work does a turn of the i-th client, which holds a lease.
func (w *crowd) work(i int, l *pawl.Lease, waited, takes time.Duration) {
	w.mu.Lock()
	w.inside++
	w.most = max(w.most, w.inside)
	w.fell = w.fell || l.Fence() <= w.last
	w.last = max(w.last, l.Fence())
	w.waits = append(w.waits, waited)
	w.rounds[i]++
	w.mu.Unlock()
	time.Sleep(takes)
	w.mu.Lock()
	w.inside--
	w.mu.Unlock()
}

func (w *crowd) close(clients []*pawl.Client) {
	for _, c := range clients {
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	}
	time.Sleep(time.Minute) // what is still on its way arrives
	if holders, waiters := w.servers.countPerServer(w.t, "jobs"); sum(holders)+sum(waiters) != 0 {
		w.t.Errorf("left on the nodes: %d hold, %d wait", holders, waiters)
	}
}
