// Package etcdtest starts real etcd clusters for tests, of one or more members, on free
// ports and in temporary folders, and stops them when the test ends. The server is built
// from its module, see internal/testservers.
package etcdtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// TB is the part of *testing.T that is needed here.
type TB = servertest.TB

// A Cluster has one or more members.
type Cluster struct {
	Members []*Member

	tb             TB
	initialCluster []string // the parts of etcd's argument --initial-cluster
	tls            bool
	network        *peerNetwork // nil if the members reach each other directly
}

// A Member is one process.
type Member struct {
	servertest.Process

	Name string
	Addr string // for clients: host:port
	Peer string // for the other members: host:port

	path  string
	args  []string
	begin func(*exec.Cmd) error
}

// Setup has the settings with which a cluster is started.
type Setup struct {
	Members  int
	Args     []string              // further arguments of each member
	CanBeCut bool                  // the network between the members can be cut, see Cluster.Cut
	TLS      *certtest.Identity    // clients use TLS with certificates of this authority
	Begin    func(*exec.Cmd) error // starts a process; nil: exec.Cmd.Start
}

// Start starts a cluster whose members have these additional arguments, and waits until
// it has a leader.
func Start(tb TB, members int, args ...string) *Cluster {
	tb.Helper()
	return Setup{Members: members, Args: args}.Start(tb)
}

// Start starts the cluster, and waits until it has a leader.
func (s Setup) Start(tb TB) *Cluster {
	tb.Helper()
	path := os.Getenv("PAWL_TEST_ETCD") // a server of another version
	if path == "" {
		path = testservers.Build(tb, "etcd")
	}
	c := &Cluster{tb: tb, tls: s.TLS != nil}
	if s.CanBeCut {
		c.network = &peerNetwork{healed: make(chan struct{})}
	}
	for i := range s.Members {
		c.newMember(path, fmt.Sprintf("m%d", i)).begin = s.Begin
	}
	starting <- struct{}{}
	defer func() { <-starting }()
	for _, m := range c.Members {
		m.args = append(s.args(tb, c, m), "--initial-cluster", strings.Join(c.initialCluster, ","), "--initial-cluster-state", "new")
		tb.Cleanup(m.Kill)
		m.launch()
	}
	for _, m := range c.Members {
		m.await()
	}
	return c
}

// starting limits how many clusters start at the same time. If a slow machine started
// dozens, none would elect a leader in time.
var starting = make(chan struct{}, runtime.NumCPU())

// newMember returns another member, without starting it.
func (c *Cluster) newMember(path, name string) *Member {
	m := &Member{Process: servertest.Process{TB: c.tb, Dir: c.tb.TempDir()}, path: path, Name: name}
	m.Addr, m.Peer = "127.0.0.1:"+servertest.FreePort(c.tb), "127.0.0.1:"+servertest.FreePort(c.tb)
	c.Members, c.initialCluster = append(c.Members, m), append(c.initialCluster, m.Name+"=http://"+m.Peer)
	return m
}

// Join starts another member. It first calls add, which announces the member's peer URL
// to the cluster.
func (c *Cluster) Join(add func(peer string)) *Member {
	c.tb.Helper()
	m := c.newMember(c.Members[0].path, fmt.Sprintf("m%d", len(c.Members)))
	add("http://" + m.Peer)
	m.args = append(Setup{}.args(c.tb, c, m), "--initial-cluster", strings.Join(c.initialCluster, ","), "--initial-cluster-state", "existing")
	c.tb.Cleanup(m.Kill)
	m.launch()
	m.await()
	return m
}

// args returns the arguments of one member. With CanBeCut it also starts a proxy.
func (s Setup) args(tb TB, c *Cluster, m *Member) []string {
	scheme, listenAddr := "http://", m.Peer
	if c.network != nil {
		listenAddr = "127.0.0.1:" + servertest.FreePort(tb)
		c.network.startProxy(tb, m.Peer, listenAddr)
	}
	var tls []string
	if c.tls {
		scheme = "https://"
		tls = []string{"--cert-file", s.TLS.Cert, "--key-file", s.TLS.Key, "--trusted-ca-file", s.TLS.CA, "--client-cert-auth"}
	}
	args := []string{
		"--name", m.Name, "--data-dir", m.Data(), "--logger", "zap", "--log-level", "warn",
		"--listen-client-urls", scheme + m.Addr, "--advertise-client-urls", scheme + m.Addr,
		"--listen-peer-urls", "http://" + listenAddr, "--initial-advertise-peer-urls", "http://" + m.Peer,
		"--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync", "--bcrypt-cost", "4",
	}
	return slices.Concat(args, tls, s.Args)
}

// URL returns a URL that names all members.
func (c *Cluster) URL() string {
	if c.tls {
		return "etcds://" + strings.Join(c.Addrs(), ",")
	}
	return "etcd://" + strings.Join(c.Addrs(), ",")
}

// Addrs returns the addresses of all members.
func (c *Cluster) Addrs() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Addr)
	}
	return all
}

// Run starts a member again, after Kill, and waits until it answers.
func (m *Member) Run() {
	m.TB.Helper()
	m.launch()
	m.await()
}

// Restart kills the member and starts it again.
func (m *Member) Restart() {
	m.TB.Helper()
	m.Kill()
	m.Run()
}

// launch starts the member without waiting.
func (m *Member) launch() {
	m.TB.Helper()
	m.Launch(exec.Command(m.path, m.args...), m.begin)
}

// await waits until the member accepts clients. It does so after a leader was elected.
func (m *Member) await() {
	m.TB.Helper()
	m.Await(func() error {
		d := net.Dialer{Timeout: time.Second}
		conn, err := d.DialContext(context.Background(), "tcp", m.Addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// KillAndErase kills the process and erases its data.
func (m *Member) KillAndErase() {
	m.TB.Helper()
	m.Kill()
	if err := os.RemoveAll(m.Data()); err != nil {
		m.TB.Fatalf("%v", err)
	}
}

// Data returns the member's data folder.
func (m *Member) Data() string { return filepath.Join(m.Dir, "data") }

var shared servertest.Shared[*Cluster]

// patientArgs let a server still answer after the machine has stood still for some
// seconds: etcd waits for its own steps for 5 s and twice the election timeout. The
// server's leases last at least one and a half times the election timeout.
var patientArgs = []string{"--election-timeout", "20000"}

// Shared returns a server of one member, with patientArgs. It runs until Stop, and each
// test uses its own prefix.
func Shared(tb TB) *Cluster {
	tb.Helper()
	return shared.Get(tb, func(tb TB) *Cluster { return Start(tb, 1, patientArgs...) })
}

// Stop ends the shared server. TestMain calls it.
func Stop() { shared.Stop() }
