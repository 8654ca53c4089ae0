package redistest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/basictest"
)

// StartCluster starts a cluster of n masters without replicas, and waits until each
// master reports that the cluster is complete.
func StartCluster(tb TB, n int) []*Server {
	tb.Helper()
	return StartClusterWith(tb, n, func(int) []string { return nil })
}

// StartClusterWith is StartCluster with additional arguments for each node.
func StartClusterWith(tb TB, n int, args func(node int) []string) []*Server {
	tb.Helper()
	nodes := make([]*Server, n)
	for i := range nodes {
		nodes[i] = Start(tb, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args(i)...)...)
	}
	for i, node := range nodes {
		node.Do("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*16384/n), fmt.Sprint((i+1)*16384/n-1))
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if i > 0 {
			node.Do("CLUSTER", "MEET", "127.0.0.1", nodes[0].announcedPort())
		}
	}
	for _, node := range nodes {
		basictest.Eventually(tb, "the cluster is up", func() bool {
			info := node.Do("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n))
		})
	}
	return nodes
}

// announcedPort returns the port that a node announces to the cluster.
func (s *Server) announcedPort() string {
	if i := slices.Index(s.args, "--tls-port"); i >= 0 {
		return s.args[i+1]
	}
	return s.Port
}

// StartReplica starts a replica of a server, and waits until it follows its master, and
// the master reports it.
func StartReplica(tb TB, master *Server, args ...string) *Server {
	tb.Helper()
	master.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0") // otherwise it waits 5 s for further replicas
	s := Start(tb, append([]string{"--replicaof", "127.0.0.1 " + master.Port}, args...)...)
	basictest.Eventually(tb, "the replica follows", func() bool {
		return strings.Contains(s.Do("INFO", "replication"), "master_link_status:up") &&
			strings.Contains(master.Do("INFO", "replication"), "port="+s.Port+",state=online")
	})
	return s
}

// AwaitCaughtUp waits until a replica has all the data of its master.
func AwaitCaughtUp(tb TB, master, replica *Server) {
	tb.Helper()
	basictest.Eventually(tb, "the replica has caught up", func() bool {
		offset := Field(master.Do("INFO", "replication"), "master_repl_offset")
		info := replica.Do("INFO", "replication")
		return Field(info, "slave_repl_offset") == offset && Field(info, "master_link_status") == "up"
	})
}

// PlanMove returns the arguments for MoveSlot: the node that owns the slot of a name,
// another node, and the slot.
func PlanMove(nodes []*Server, name string) (from, to *Server, slot uint16) {
	from, slot = Owner(nodes, name)
	if to = nodes[0]; to == from {
		to = nodes[1]
	}
	return from, to, slot
}

// MoveSlot moves a slot, and the keys in it, from one node of a cluster to another, as
// resharding does. It calls meanwhile before it moves the keys, and again before the new
// node owns the slot.
func MoveSlot(nodes []*Server, slot uint16, from, to *Server, meanwhile func()) {
	n := fmt.Sprint(slot)
	fromID, toID := from.id(), to.id()
	to.Do("CLUSTER", "SETSLOT", n, "IMPORTING", fromID)
	from.Do("CLUSTER", "SETSLOT", n, "MIGRATING", toID)
	meanwhile()
	for {
		lines := strings.Split(from.Do("CLUSTER", "GETKEYSINSLOT", n, "100"), "\r\n")
		moved := false
		for i := 2; i < len(lines); i += 2 {
			from.Do("MIGRATE", "127.0.0.1", to.Port, lines[i], "0", "5000")
			moved = true
		}
		if !moved {
			break
		}
	}
	meanwhile()
	for _, node := range append([]*Server{to, from}, nodes...) {
		node.Do("CLUSTER", "SETSLOT", n, "NODE", toID)
	}
}

// Owner returns the node that owns the slot of a key, and the slot.
func Owner(nodes []*Server, key string) (*Server, uint16) {
	var slot int
	_, _ = fmt.Sscanf(nodes[0].Do("CLUSTER", "KEYSLOT", key), ":%d", &slot)
	for i, node := range nodes {
		if slot < (i+1)*16384/len(nodes) {
			return node, uint16(slot)
		}
	}
	return nil, 0
}

// StartClusterReplica starts a replica of one node of a cluster, and waits until all
// nodes list it as a replica.
func StartClusterReplica(tb TB, nodes []*Server, of *Server) *Server {
	tb.Helper()
	s := Start(tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
	for _, node := range append([]*Server{s}, nodes...) {
		node.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	}
	s.Do("CLUSTER", "MEET", "127.0.0.1", of.Port)
	master := of.id()
	basictest.Eventually(tb, "the replica meets the cluster", func() bool {
		answer, err := Ask(s.Addr, "CLUSTER", "REPLICATE", master) // an error until it knows the master
		return err == nil && strings.HasPrefix(answer, "+OK")
	})
	basictest.Eventually(tb, "the replica follows", func() bool {
		return strings.Contains(s.Do("INFO", "replication"), "master_link_status:up")
	})
	for _, node := range nodes {
		basictest.Eventually(tb, "all nodes know the replica", func() bool {
			return strings.Contains(node.Do("CLUSTER", "REPLICAS", master), ":"+s.Port+"@")
		})
	}
	return s
}

// FailOver makes a replica the master. With masterIsDead, it does not ask the old master.
func FailOver(tb TB, nodes []*Server, replica *Server, masterIsDead bool) {
	tb.Helper()
	command := []string{"CLUSTER", "FAILOVER"}
	if masterIsDead {
		command = append(command, "TAKEOVER")
	}
	replica.Do(command...)
	basictest.Eventually(tb, "the replica takes over", func() bool {
		return strings.Contains(replica.Do("INFO", "replication"), "role:master")
	})
	id := replica.id()
	for _, node := range append([]*Server{replica}, nodes...) {
		basictest.Eventually(tb, "all nodes know the new master", func() bool {
			known := false
			for line := range strings.SplitSeq(node.Do("CLUSTER", "NODES"), "\n") {
				known = known || strings.HasPrefix(line, id) && strings.Contains(line, "master")
			}
			return known && strings.Contains(node.Do("CLUSTER", "INFO"), "cluster_state:ok")
		})
	}
}

func (s *Server) id() string {
	return strings.TrimSpace(strings.SplitN(s.Do("CLUSTER", "MYID"), "\r\n", 3)[1])
}
