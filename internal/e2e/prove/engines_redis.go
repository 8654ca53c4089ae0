//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// durable makes a Redis server answer only after it has stored its writes on the disk.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}

func startRedis(l *lab) setup {
	port := servertest.FreePort(l)
	line := fmt.Sprintf("exec redis-server --port %s --bind 127.0.0.1 --dir '%s' --save '' %s", port, l.TempDir(), strings.Join(durable, " "))
	return setup{url: "redis://127.0.0.1:" + port, args: []string{"--server-cmd", line}}
}

// membersOf returns the list of the servers for a URL, and the servers as members.
func membersOf(servers []*redistest.Server) (list string, members []member) {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
		members = append(members, member{s.Kill, s.Run, s.Pause, s.Resume})
	}
	return strings.Join(addrs, ","), members
}

func startCluster(l *lab) setup {
	nodes := redistest.StartClusterWith(l, 3, func(int) []string { return durable })
	list, members := membersOf(nodes)
	return setup{url: "redis://" + list, fault: disturb(members, func() {
		for _, n := range nodes {
			wait(l, "the cluster does not recover", func() bool {
				answer, _ := redistest.Ask(n.Addr, "CLUSTER", "INFO")
				return strings.Contains(answer, "cluster_state:ok")
			})
		}
	})}
}

func redlock(l *lab) (url string, members []member) {
	servers := make([]*redistest.Server, 3)
	for i := range servers {
		servers[i] = redistest.Start(l, durable...)
	}
	list, members := membersOf(servers)
	return "redlock://" + list, members
}

func startRedlock(l *lab) setup {
	url, members := redlock(l)
	return setup{url: url, fault: disturb(members, func() {})}
}

// startSentinel starts a group whose fault replaces the master, after a kill or on
// request. Redis replicates asynchronously, so the new master may lack the last writes.
func startSentinel(l *lab) setup {
	g := redistest.StartSentinelGroup(l, durable...)
	master, other := g.Master, g.Replica
	return setup{url: g.URL(), args: []string{"--forgets"}, fault: func() {
		onRequest := rand.IntN(3) == 0
		if onRequest {
			failOver(l, g)
		} else {
			master.Kill()
		}
		wait(l, "the replica has not become the master", func() bool {
			return role(other) == "master" && allSentinelsName(g, other.Port)
		})
		if !onRequest {
			master.Run()
		}
		master, other = other, master
		wait(l, "the old master does not follow the new one", func() bool {
			return role(other) == "slave" && strings.Contains(info(other), "master_link_status:up")
		})
	}}
}

// failOver asks a Sentinel to fail over. The Sentinel refuses for some time after an
// earlier fail-over.
func failOver(l *lab, g *redistest.SentinelGroup) {
	wait(l, "the Sentinels do not fail over", func() bool {
		answer, err := redistest.Ask(g.Sentinels[0].Addr, "SENTINEL", "FAILOVER", "main")
		return err == nil && strings.HasPrefix(answer, "+OK")
	})
}

// allSentinelsName reports whether all Sentinels say that the master has this port.
func allSentinelsName(g *redistest.SentinelGroup, port string) bool {
	for _, s := range g.Sentinels {
		answer, err := redistest.Ask(s.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
		if err != nil || !strings.Contains(answer, "\r\n"+port+"\r\n") {
			return false
		}
	}
	return true
}

func info(s *redistest.Server) string {
	answer, _ := redistest.Ask(s.Addr, "INFO", "replication")
	return answer
}

func role(s *redistest.Server) string { return redistest.Field(info(s), "role") }

// wait waits until done returns true. After a minute it fails with problem.
func wait(l *lab, problem string, done func() bool) {
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("%s", problem)
		}
	}
}
