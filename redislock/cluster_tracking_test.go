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

// onEach is a name on each node of a cluster.
func onEach(nodes []*redistest.Server) map[*redistest.Server]string {
	names := map[*redistest.Server]string{}
	for i := 0; len(names) < len(nodes); i++ {
		name := fmt.Sprint("job", i)
		node, _ := redistest.Owner(nodes, name)
		names[node] = name
	}
	return names
}

func state(name string) string { return "pawl:{" + name + "}s" }

func TestInAClusterAHolderIsNotifiedThatItsNameIsGone(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	for how, d := range map[string]*redisscript.Driver{"by URL": openDriver(t, "redis://"+nodes[0].Addr), "a prepared client": tracked(t, nodes[0].Addr)} {
		heard := listen(t, d)
		for node, name := range onEach(nodes) {
			c := mutex(name)
			gets(t, d, c)
			armed(t, node)
			renews(t, d, c) // its own change is not news, and the name has to be armed again
			time.Sleep(50 * time.Millisecond)
			node.Do("DEL", state(name))
			hear(t, heard, driver.SignalLost, c.Token)

			gets(t, d, c)
			armed(t, node)
			node.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			node.Do("CONFIG", "SET", "maxmemory", "1")
			_, _ = redistest.Ask(node.Addr, "SET", "{"+name+"}x", "")
			hear(t, heard, driver.SignalLost, c.Token)
			node.Do("CONFIG", "SET", "maxmemory", "0")

			gets(t, d, c)
			armed(t, node)
			node.Do("FLUSHALL")
			hear(t, heard, driver.SignalRetry, driver.Token{})
			if err := renewed(d, c); !errors.Is(err, driver.ErrNoSuchLease) {
				t.Errorf("%s: %v after FLUSHALL; want ErrNoSuchLease", how, err)
			}
		}
		// a name that could not be armed while memory was full is tried again
		becomes(t, how+": ReportsDeletions is true", func() bool { return d.Properties().ReportsDeletions })
	}
}

func TestALeaseIsWatchedWhereItsSlotHasMoved(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	heard := listen(t, d)
	from, to, slot := redistest.Moving(nodes, "job")
	for range 2 {
		c := mutex("job")
		c.TTL = time.Hour
		gets(t, d, c)
		armed(t, from)
		moved := false
		redistest.Move(nodes, slot, from, to, func() {
			if moved { // the keys have moved, but not the slot
				armed(t, to)
			}
			moved = true
		})
		to.Do("DEL", state("job"))
		hear(t, heard, driver.SignalLost, c.Token)
		from, to = to, from
	}
}

func TestALeaseIsWatchedOnTheNewMaster(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	heard := listen(t, d)
	for node, name := range onEach(nodes) {
		if node == nodes[0] {
			continue // enough tries
		}
		replica := redistest.StartClusterReplica(t, nodes, node)
		c := mutex(name)
		c.TTL = time.Hour
		gets(t, d, c)
		armed(t, node)

		// By hand: the old master is then a replica, and reports the changes of the new
		// one, so no claim has to look.
		redistest.FailOver(t, nodes, replica, false)
		replica.Do("DEL", state(name))
		hear(t, heard, driver.SignalLost, c.Token)
		gets(t, d, c)
		armed(t, replica)
		renews(t, d, c)
		time.Sleep(50 * time.Millisecond)
		replica.Do("DEL", state(name))
		hear(t, heard, driver.SignalLost, c.Token)

		// And back, with a master that dies: all claims look.
		gets(t, d, c)
		armed(t, replica)
		follows(t, replica, node)
		for len(heard) > 0 {
			<-heard
		}
		replica.Kill()
		hear(t, heard, driver.SignalRetry, driver.Token{})
		redistest.FailOver(t, nodes, node, true)
		eventually(t, func() error { return renewed(d, c) })
		armed(t, node)
		node.Do("DEL", state(name))
		hear(t, heard, driver.SignalLost, c.Token)
	}
}

// follows waits until a replica has all the data of its master.
func follows(t *testing.T, master, replica *redistest.Server) {
	t.Helper()
	becomes(t, "the replica has caught up", func() bool {
		at := redistest.Field(master.Do("INFO", "replication"), "master_repl_offset")
		info := replica.Do("INFO", "replication")
		return redistest.Field(info, "slave_repl_offset") == at && redistest.Field(info, "master_link_status") == "up"
	})
}

// A name that could not be armed is tried again, and its holder then looks: the name may
// have been gone in between.
func TestALeaseThatCouldNotBeWatchedIsTriedAgain(t *testing.T) {
	nightly(t, "whole clusters")
	server := redistest.Start(t)
	d := openDriver(t, user(t, server, rights+" "+rightsToPush+" "+rightsToTrack))
	heard := listen(t, d)
	server.Do("ACL", "SETUSER", "joe", "-client|caching")
	c := mutex("job")
	gets(t, d, c)
	becomes(t, "ReportsDeletions is false", func() bool { return !d.Properties().ReportsDeletions })
	server.Do("ACL", "SETUSER", "joe", "+client|caching")
	hear(t, heard, driver.SignalLost, c.Token)
	renews(t, d, c)
	armed(t, server)
	if !d.Properties().ReportsDeletions {
		t.Error("ReportsDeletions stays false")
	}
	server.Do("DEL", state("job"))
	hear(t, heard, driver.SignalLost, c.Token)
}
