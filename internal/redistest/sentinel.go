package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A SentinelGroup is a master, its replica, and three Sentinels that watch them under the
// name "main".
type SentinelGroup struct {
	Master, Replica *Server
	Sentinels       []*Server
}

// StartSentinelGroup starts a group, and waits until it could replace its master.
func StartSentinelGroup(tb TB, args ...string) *SentinelGroup {
	tb.Helper()
	g := &SentinelGroup{Master: Start(tb, args...)}
	g.Replica = StartReplica(tb, g.Master, args...)
	for range 3 {
		g.Sentinels = append(g.Sentinels, StartSentinel(tb, g.Master.Port, 2))
	}
	basictest.Eventually(tb, "the Sentinels have found each other", g.isReady)
	return g
}

// StartSentinel starts a Sentinel that watches a master under the name "main", with these
// additional lines in its configuration.
func StartSentinel(tb TB, port string, quorum int, lines ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	conf := filepath.Join(s.Dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %s %d\n"+
		"sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n%s\n", s.Port, s.Dir, port, quorum, strings.Join(lines, "\n"))
	noError(tb, os.WriteFile(conf, []byte(text), 0o600))
	s.run("redis-sentinel", conf)
	return s
}

// isReady reports whether every Sentinel knows the two others and the replica.
func (g *SentinelGroup) isReady() bool {
	for _, s := range g.Sentinels {
		quorum, err := Ask(s.Addr, "SENTINEL", "CKQUORUM", "main")
		if err != nil || !strings.HasPrefix(quorum, "+OK 3 usable") {
			return false
		}
		replicas, err := Ask(s.Addr, "SENTINEL", "REPLICAS", "main")
		if err != nil || !strings.Contains(replicas, g.Replica.Port) {
			return false
		}
	}
	return true
}

// URL returns the URL with the Sentinels and the name of the master.
func (g *SentinelGroup) URL() string {
	var addrs []string
	for _, s := range g.Sentinels {
		addrs = append(addrs, s.Addr)
	}
	return "redis://" + strings.Join(addrs, ",") + "?master_set=main"
}

// CheckFailOver kills the master while a name has a holder, whose lease is replicated,
// and a waiter. The holder keeps its lease on the new master. The waiter gets a signal to
// retry, and a greater fence after the release.
func (g *SentinelGroup) CheckFailOver(d, other driver.Driver) {
	tb := g.Master.TB
	tb.Helper()
	signals := servertest.Listen(tb, other.(driver.Signaler))
	c, waiter := servertest.Mutex("fail-over"), servertest.Queued("fail-over")
	c.TTL, waiter.QueueTTL = 5*time.Minute, 5*time.Minute
	first := servertest.Gets(tb, d, c)
	servertest.Waits(tb, other, waiter)
	AwaitCaughtUp(tb, g.Master, g.Replica)
	g.Master.Kill()
	basictest.Until(tb, "the new master renews the lease", func() error {
		err := bounded(renew(d, c))
		if errors.Is(err, driver.ErrNoSuchLease) {
			tb.Fatalf("the new master does not know the lease")
		}
		return err
	})
	servertest.Hear(tb, signals, driver.SignalRetry, driver.Token{}) // because messages may be lost
	servertest.Waits(tb, other, servertest.Mutex(c.Name))
	servertest.Releases(tb, d, c)
	basictest.Until(tb, "the waiter is granted", func() error { // by polling: the subscription may not be back yet
		second, err := other.Acquire(context.Background(), waiter)
		if err == nil && second.Fence <= first.Fence {
			tb.Fatalf("fence %d after %d", second.Fence, first.Fence)
		}
		return err
	})
}
