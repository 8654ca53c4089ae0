// Package natstest starts real NATS servers for tests, alone or as a cluster, on free
// ports and in temporary folders, and stops them when the test ends. The server is built
// from its module, see internal/testservers.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// WithoutJetStream is the config of a server that can only pass messages on.
const WithoutJetStream = "# without JetStream"

// OwnJetStream begins a config that has all settings of JetStream itself.
const OwnJetStream = "jetstream"

// TB is the part of *testing.T that is needed here.
type TB = redistest.TB

// A Server is one process.
type Server struct {
	Addr string
	Dir  string

	tb    TB
	args  []string
	begin func(*exec.Cmd) error // starts the process
	cmd   *exec.Cmd
}

// starting holds the servers that start. Tests that begin side by side would otherwise
// start some hundred at once, and on a slow machine none of them would answer in time.
var starting = make(chan struct{}, runtime.NumCPU())

// Start starts a server with JetStream, and waits until it answers. config is added to
// its configuration file.
func Start(tb TB, config string, env ...string) *Server {
	tb.Helper()
	s := configured(tb, "", config)
	s.Run(env...)
	return s
}

// StartWith is Start with a function that starts the process, now and in each Run.
func StartWith(tb TB, begin func(*exec.Cmd) error) *Server {
	tb.Helper()
	s := configured(tb, "", "")
	s.begin = begin
	s.Run()
	return s
}

// StartCluster starts n servers that are one cluster, and waits until they have a leader.
func StartCluster(tb TB, n int) []*Server {
	tb.Helper()
	routes, nodes := make([]string, n), make([]*Server, n)
	for i := range routes {
		routes[i] = "127.0.0.1:" + redistest.FreePort(tb)
	}
	starting <- struct{}{}
	defer func() { <-starting }()
	for i := range nodes {
		nodes[i] = configured(tb, fmt.Sprintf("n%d", i), fmt.Sprintf(
			"cluster { name: c1, listen: %q, no_advertise: true, routes: [nats://%s] }",
			routes[i], strings.Join(routes, ", nats://")))
		nodes[i].run()
	}
	for _, s := range nodes {
		s.awaitPort()
	}
	return nodes
}

func configured(tb TB, name, config string) *Server {
	tb.Helper()
	s := &Server{tb: tb, Dir: tb.TempDir(), Addr: "127.0.0.1:" + redistest.FreePort(tb), begin: (*exec.Cmd).Start}
	file := filepath.Join(s.Dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\n", s.Addr)
	if name != "" {
		text += fmt.Sprintf("server_name: %q\n", name)
	}
	if config != WithoutJetStream && !strings.HasPrefix(config, OwnJetStream) {
		text += fmt.Sprintf("jetstream { store_dir: %q, max_file: 1GB, max_mem: 256MB }\n", s.Dir)
	}
	if err := os.WriteFile(file, []byte(text+config+"\n"), 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	s.args = []string{"-c", file}
	tb.Cleanup(s.Kill)
	return s
}

// Run starts the process again, after Kill or Stop, and waits until it answers.
func (s *Server) Run(env ...string) {
	s.tb.Helper()
	starting <- struct{}{}
	defer func() { <-starting }()
	s.run(env...)
	s.awaitPort()
}

func (s *Server) run(env ...string) {
	s.tb.Helper()
	path := testservers.Build(s.tb, "nats")
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.tb.Fatalf("%v", err)
	}
	defer log.Close()
	s.cmd = exec.Command(path, s.args...)
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.begin(s.cmd); err != nil {
		s.tb.Fatalf("%v", err)
	}
}

// startTimeout is the time in which a server has to start. Only one that hangs takes so
// long.
const startTimeout = 3 * time.Minute

// awaitPort waits until the server greets a connection.
func (s *Server) awaitPort() {
	s.tb.Helper()
	for began := time.Now(); time.Since(began) < startTimeout; {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Addr)
		if err == nil {
			b := make([]byte, 4)
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, err = c.Read(b)
			_ = c.Close()
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // with TLS first, it waits for us
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	s.tb.Fatalf("the server does not answer:\n%s", said)
}

// Kill kills the process, as kill -9 does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}
