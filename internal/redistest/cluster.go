package redistest

import (
	"fmt"
	"strings"
	"time"
)

// StartCluster starts a cluster of n masters without replicas, and waits until each of them says that it is whole.
func StartCluster(tb TB, n int) []*Server {
	tb.Helper()
	nodes := make([]*Server, n)
	for i := range nodes {
		nodes[i] = Start(tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
	}
	for i, node := range nodes {
		node.Do("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*16384/n), fmt.Sprint((i+1)*16384/n-1))
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if i > 0 {
			node.Do("CLUSTER", "MEET", "127.0.0.1", nodes[0].Port)
		}
	}
	for _, node := range nodes {
		for tries := 0; ; tries++ {
			info := node.Do("CLUSTER", "INFO")
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n)) {
				break
			}
			if tries == 500 {
				tb.Fatalf("the cluster does not come up: %s", info)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nodes
}

// StartReplica starts a replica of a server, and waits until it follows.
func StartReplica(tb TB, of *Server, args ...string) *Server {
	tb.Helper()
	s := Start(tb, append([]string{"--replicaof", "127.0.0.1 " + of.Port, "--repl-diskless-sync-delay", "0"}, args...)...)
	for tries := 0; !strings.Contains(s.Do("INFO", "replication"), "master_link_status:up"); tries++ {
		if tries == 500 {
			tb.Fatalf("the replica does not follow")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s
}
