package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

// nameOnEachNode returns a name on each node of a cluster.
func nameOnEachNode(nodes []*redistest.Server) map[*redistest.Server]string {
	names := map[*redistest.Server]string{}
	for i := 0; len(names) < len(nodes); i++ {
		name := fmt.Sprint("job", i)
		node, _ := redistest.Owner(nodes, name)
		names[node] = name
	}
	return names
}

func stateKey(name string) string { return "pawl:{" + name + "}s" }

func TestInAClusterAHolderIsNotifiedThatItsNameIsGone(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	for client, d := range map[string]*redisscript.Driver{"by URL": openDriver(t, "redis://"+nodes[0].Addr), "a prepared client": openTracked(t, nodes[0].Addr)} {
		signals := listen(t, d)
		for node, name := range nameOnEachNode(nodes) {
			c := mutex(name)
			gets(t, d, c)
			awaitTracked(t, node)
			renews(t, d, c) // its own change is not reported, and the name has to be armed again
			time.Sleep(50 * time.Millisecond)
			node.Do("DEL", stateKey(name))
			hear(t, signals, driver.SignalLost, c.Token)

			gets(t, d, c)
			awaitTracked(t, node)
			node.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			node.Do("CONFIG", "SET", "maxmemory", "1")
			_, _ = redistest.Ask(node.Addr, "SET", "{"+name+"}x", "")
			hear(t, signals, driver.SignalLost, c.Token)
			node.Do("CONFIG", "SET", "maxmemory", "0")

			gets(t, d, c)
			awaitTracked(t, node)
			node.Do("FLUSHALL")
			hear(t, signals, driver.SignalRetry, driver.Token{})
			if err := renewed(d, c); !errors.Is(err, driver.ErrNoSuchLease) {
				t.Errorf("%s: %v after FLUSHALL; want ErrNoSuchLease", client, err)
			}
		}
		// the driver retries an arming that failed while memory was full
		becomes(t, client+": ReportsDeletions is true", func() bool { return d.Properties().ReportsDeletions })
	}
}

func TestALeaseIsTrackedAfterItsSlotMoved(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	signals := listen(t, d)
	from, to, slot := redistest.PlanMove(nodes, "job")
	for range 2 {
		c := mutex("job")
		c.TTL = time.Hour
		gets(t, d, c)
		awaitTracked(t, from)
		keysMoved := false
		redistest.MoveSlot(nodes, slot, from, to, func() {
			if keysMoved { // the keys have moved, but not the slot
				awaitTracked(t, to)
			}
			keysMoved = true
		})
		to.Do("DEL", stateKey("job"))
		hear(t, signals, driver.SignalLost, c.Token)
		from, to = to, from
	}
}

func TestALeaseIsTrackedOnTheNewMaster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	signals := listen(t, d)
	for node, name := range nameOnEachNode(nodes) {
		if node == nodes[0] {
			continue // two nodes are enough
		}
		replica := redistest.StartClusterReplica(t, nodes, node)
		c := mutex(name)
		c.TTL = time.Hour
		gets(t, d, c)
		awaitTracked(t, node)

		// After a fail-over by hand, the old master is a replica, and reports the changes
		// of the new one, so the claims get no signal to retry.
		redistest.FailOver(t, nodes, replica, false)
		replica.Do("DEL", stateKey(name))
		hear(t, signals, driver.SignalLost, c.Token)
		gets(t, d, c)
		awaitTracked(t, replica)
		renews(t, d, c)
		time.Sleep(50 * time.Millisecond)
		replica.Do("DEL", stateKey(name))
		hear(t, signals, driver.SignalLost, c.Token)

		// The new master dies, so all claims retry. Fail over to the old one.
		gets(t, d, c)
		awaitTracked(t, replica)
		redistest.AwaitCaughtUp(t, replica, node)
		for len(signals) > 0 {
			<-signals
		}
		replica.Kill()
		hear(t, signals, driver.SignalRetry, driver.Token{})
		redistest.FailOver(t, nodes, node, true)
		eventually(t, func() error { return renewed(d, c) })
		awaitTracked(t, node)
		node.Do("DEL", stateKey(name))
		hear(t, signals, driver.SignalLost, c.Token)
	}
}

// The driver retries an arming that failed. Then the holder gets a signal, because the
// name may have been deleted meanwhile.
func TestTrackingIsRetriedAfterAnError(t *testing.T) {
	skipIfShort(t, "whole clusters")
	server := redistest.Start(t)
	d := openDriver(t, setUser(t, server, rights+" "+rightsToPush+" "+rightsToTrack))
	signals := listen(t, d)
	server.Do("ACL", "SETUSER", "joe", "-client|caching")
	c := mutex("job")
	gets(t, d, c)
	becomes(t, "ReportsDeletions is false", func() bool { return !d.Properties().ReportsDeletions })
	server.Do("ACL", "SETUSER", "joe", "+client|caching")
	hear(t, signals, driver.SignalLost, c.Token)
	renews(t, d, c)
	awaitTracked(t, server)
	if !d.Properties().ReportsDeletions {
		t.Error("ReportsDeletions stays false")
	}
	server.Do("DEL", stateKey("job"))
	hear(t, signals, driver.SignalLost, c.Token)
}
