// Package etcdtest starts real etcd servers for tests, of one member or several, on free
// ports and in temporary folders, and stops them when the test ends. The server is built
// from its module, see internal/testservers. Where that cannot be done the test is
// skipped, or fails if PAWL_TEST_REQUIRE is set.
package etcdtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
)

// TB is what is needed of a *testing.T.
type TB = redistest.TB

// A Cluster is one member or several.
type Cluster struct {
	Members []*Member

	tb TB
}

// A Member is one process.
type Member struct {
	Name string
	Addr string // of clients: host:port
	Peer string // of the other members
	Dir  string

	tb   TB
	path string
	args []string
	cmd  *exec.Cmd
}

// Start starts a cluster of so many members, with these arguments more for each, and
// waits until it has a leader.
func Start(tb TB, members int, args ...string) *Cluster {
	tb.Helper()
	path, err := built()
	if err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			tb.Fatalf("etcd cannot be built, and PAWL_TEST_REQUIRE is set: %v", err)
		}
		tb.Skipf("etcd cannot be built: go build -C internal/testservers/etcd says %v", err)
	}
	c := &Cluster{tb: tb}
	var all []string
	for i := range members {
		m := &Member{tb: tb, path: path, Name: fmt.Sprintf("m%d", i), Dir: tb.TempDir()}
		m.Addr, m.Peer = "127.0.0.1:"+redistest.FreePort(tb), "127.0.0.1:"+redistest.FreePort(tb)
		c.Members = append(c.Members, m)
		all = append(all, m.Name+"=http://"+m.Peer)
	}
	for _, m := range c.Members {
		m.args = append([]string{
			"--name", m.Name, "--data-dir", filepath.Join(m.Dir, "data"), "--logger", "zap", "--log-level", "warn",
			"--listen-client-urls", "http://" + m.Addr, "--advertise-client-urls", "http://" + m.Addr,
			"--listen-peer-urls", "http://" + m.Peer, "--initial-advertise-peer-urls", "http://" + m.Peer,
			"--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", "new",
			"--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync",
		}, args...)
		m.launch()
		tb.Cleanup(m.Kill)
	}
	for _, m := range c.Members {
		m.await()
	}
	return c
}

// URL names all members.
func (c *Cluster) URL() string { return "etcd://" + strings.Join(c.Addrs(), ",") }

// Addrs are those of all members.
func (c *Cluster) Addrs() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Addr)
	}
	return all
}

// Run starts a member again, after Kill, and waits until it answers.
func (m *Member) Run() {
	m.tb.Helper()
	m.launch()
	m.await()
}

// launch starts it without waiting.
func (m *Member) launch() {
	m.tb.Helper()
	log, err := os.OpenFile(filepath.Join(m.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.tb.Fatalf("%v", err)
	}
	defer log.Close()
	m.cmd = exec.Command(m.path, m.args...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		m.tb.Fatalf("%v", err)
	}
}

// await waits until the member accepts clients, which it does when there is a leader.
func (m *Member) await() {
	m.tb.Helper()
	for range 1500 {
		d := net.Dialer{Timeout: time.Second}
		if conn, err := d.DialContext(context.Background(), "tcp", m.Addr); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(filepath.Join(m.Dir, "log"))
	m.tb.Fatalf("%s does not answer:\n%s", m.Name, said)
}

// Kill kills the process, as kill -9 does.
func (m *Member) Kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}
