package natslock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/natslock"
)

// openAt opens a driver with several nodes that is connected to the first one. nats.go
// connects to a random node, so openAt retries.
func openAt(t *testing.T, nodes ...string) *natslock.Driver {
	t.Helper()
	for range 100 {
		d := open(t, "nats://"+strings.Join(nodes, ","))
		if d.ServerAddr() == nodes[0] {
			return d
		}
		_ = d.Close()
	}
	t.Fatalf("no driver connects to %s", nodes[0])
	return nil
}

// A cluster is cut into a majority and a minority, or one of its nodes hangs. Clients are
// connected to both sides. Some clients of the minority can connect to another node. The
// others get errors; a holder among them learns in time that it lost its lease. No name
// is granted while it is held.
func TestAPartition(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	for name, tt := range map[string]struct {
		cut    func(w *natstest.Network, node int) (heal func())
		leader bool // whether the leader is cut off
	}{
		"OfTheLeader":         {(*natstest.Network).CutOff, true},
		"OfTheLeaderSilently": {(*natstest.Network).Silence, true},
		"OfAnother":           {(*natstest.Network).CutOff, false},
		"ByALeaderThatHangs":  {func(w *natstest.Network, node int) func() { w.Nodes[node].Pause(); return w.Nodes[node].Resume }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := natstest.StartNetwork(t, 3)
			node := leaderOf(t, network.Nodes)
			if !tt.leader {
				node = (node + 1) % 3
			}
			cutOff, first, second := network.Nodes[node].Addr, network.Nodes[(node+1)%3].Addr, network.Nodes[(node+2)%3].Addr
			servertest.Partition(t,
				func() *pawl.Client { return client(t, "nats://"+cutOff) },
				func() *pawl.Client { return clientOf(t, openAt(t, cutOff, first, second)) },
				func() *pawl.Client { return client(t, "nats://"+first+","+second) },
				func() (heal func()) { return tt.cut(network, node) })
		})
	}
}

// All nodes of a cluster are killed at the same time, and restarted. On disk, leases are
// still held. In memory, names are granted again with greater fences, and the holders
// learn that they lost.
func TestAClusterThatIsRestarted(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	for _, storage := range []string{"file", "memory"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			nodes := natstest.StartCluster(t, 3)
			url := fmt.Sprintf("nats://%s,%s,%s?replicas=3&storage=%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr, storage)
			check := servertest.RidesThrough
			if storage == "memory" {
				check = servertest.Forgets
			}
			check(t, openDriver(t, url), openDriver(t, url), func() {
				for _, s := range nodes {
					s.Kill()
				}
				for _, s := range nodes {
					s.Run()
				}
			})
		})
	}
}

// A cluster that is starting still has too few servers for three replicas. The bucket
// must get three replicas nevertheless.
func TestABucketOfAClusterThatIsStarting(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	openDriver(t, "nats://"+nodes[0].Addr+"/another?replicas=3") // waits until the cluster is complete
	nodes[2].Kill()
	back := make(chan struct{})
	time.AfterFunc(700*time.Millisecond, func() { defer close(back); nodes[2].Run() })
	defer func() { <-back }() // because Run may fail the test
	openDriver(t, "nats://"+nodes[0].Addr)
	_, js := connect(t, nodes[0])
	if n := bucketInfo(t, js).Config.Replicas; n != 3 {
		t.Errorf("the bucket has %d replicas, want 3", n)
	}
}

// Without a majority, an error has a hint.
func TestAClusterWithoutAMajority(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	d := openDriver(t, "nats://"+nodes[leader].Addr)
	known := mutex("known")
	gets(t, d, known)
	nodes[(leader+1)%3].Kill()
	nodes[(leader+2)%3].Kill()
	wantHint := func(what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent || e.Hint == "" || e.Op == "" {
			t.Errorf("%s: %v; want a temporary error with a hint", what, err)
		}
	}
	_, err := d.Acquire(within(t, 3*time.Second), mutex("n"))
	wantHint("Acquire", err)
	answers, err := d.Renew(within(t, 3*time.Second), []driver.LeaseRef{lease(known)})
	wantHint("Renew", errors.Join(append(answers, err)...))
	_, err = natslock.Open(within(t, 3*time.Second), "nats://"+nodes[leader].Addr+"/another")
	wantHint("Open", err)
	nodes[leader].Pause()
	_, err = natslock.Open(within(t, time.Second), "nats://"+nodes[leader].Addr)
	wantHint("Open of a server that hangs", err)
}
