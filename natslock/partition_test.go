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

// openAt opens a driver that knows several nodes and is connected to the first of them.
// nats.go chooses one at random, so openAt tries again.
func openAt(t *testing.T, nodes ...string) *natslock.Driver {
	t.Helper()
	for range 100 {
		d := open(t, "nats://"+strings.Join(nodes, ","))
		if d.Node() == nodes[0] {
			return d
		}
		_ = d.Close()
	}
	t.Fatalf("nobody is ever connected to %s", nodes[0])
	return nil
}

// A cluster is cut into two parts, one of them with a majority, or one of its nodes
// hangs. Clients are on both sides; some on the other side can connect to another node,
// and some cannot. A client that cannot gets an error, a holder learns in time that it
// lost, and no name is granted while it is held.
func TestAPartition(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	for name, one := range map[string]struct {
		cut    func(w *natstest.Network, node int) (heal func())
		leader bool // the leader is cut off
	}{
		"OfTheLeader":         {(*natstest.Network).CutOff, true},
		"OfTheLeaderSilently": {(*natstest.Network).Silence, true},
		"OfAnother":           {(*natstest.Network).CutOff, false},
		"ByALeaderThatHangs":  {func(w *natstest.Network, node int) func() { w.Nodes[node].Pause(); return w.Nodes[node].Resume }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := natstest.StartNetwork(t, 3)
			away := leaderOf(t, w.Nodes)
			if !one.leader {
				away = (away + 1) % 3
			}
			there, first, second := w.Nodes[away].Addr, w.Nodes[(away+1)%3].Addr, w.Nodes[(away+2)%3].Addr
			servertest.Partition(t,
				func() *pawl.Client { return client(t, "nats://"+there) },
				func() *pawl.Client { return clientOf(t, openAt(t, there, first, second)) },
				func() *pawl.Client { return client(t, "nats://"+first+","+second) },
				func() (heal func()) { return one.cut(w, away) })
		})
	}
}

// All nodes of a cluster end at the same time, and come back. With disks, leases are
// still held; in memory, names are granted again with greater fences, and their holders
// learn of it.
func TestAClusterThatIsRestarted(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	for _, storage := range []string{"file", "memory"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			nodes := natstest.StartCluster(t, 3)
			url := fmt.Sprintf("nats://%s,%s,%s?replicas=3&storage=%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr, storage)
			happens := servertest.RidesThrough
			if storage == "memory" {
				happens = servertest.Forgets
			}
			happens(t, openDriver(t, url), openDriver(t, url), func() {
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

// A cluster that is starting knows of too few servers for three replicas. The bucket
// still gets three.
func TestABucketOfAClusterThatIsStarting(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	openDriver(t, "nats://"+nodes[0].Addr+"/another?replicas=3") // the cluster has been complete
	nodes[2].Kill()
	back := make(chan struct{})
	time.AfterFunc(700*time.Millisecond, func() { defer close(back); nodes[2].Run() })
	defer func() { <-back }() // it may fail the test, which must not have ended by then
	openDriver(t, "nats://"+nodes[0].Addr)
	_, js := connect(t, nodes[0])
	if n := bucketInfo(t, js).Config.Replicas; n != 3 {
		t.Errorf("the bucket has %d replicas, want 3", n)
	}
}

// If no server can answer, the error says what to check.
func TestAClusterWithoutAMajority(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	d := openDriver(t, "nats://"+nodes[leader].Addr)
	known := mutex("known")
	gets(t, d, known)
	nodes[(leader+1)%3].Kill()
	nodes[(leader+2)%3].Kill()
	saysWhatToDo := func(what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent || e.Hint == "" || e.Op == "" {
			t.Errorf("%s: %v; want it to say what to look at", what, err)
		}
	}
	_, err := d.Acquire(within(t, 3*time.Second), mutex("n"))
	saysWhatToDo("Acquire", err)
	answers, err := d.Renew(within(t, 3*time.Second), []driver.LeaseRef{lease(known)})
	saysWhatToDo("Renew", errors.Join(append(answers, err)...))
	_, err = natslock.Open(within(t, 3*time.Second), "nats://"+nodes[leader].Addr+"/another")
	saysWhatToDo("Open", err)
	nodes[leader].Pause()
	_, err = natslock.Open(within(t, time.Second), "nats://"+nodes[leader].Addr)
	saysWhatToDo("Open of a server that hangs", err)
}
