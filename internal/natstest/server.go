// Package natstest starts real NATS servers for tests, alone or as a cluster, on free
// ports and in temporary folders, and stops them when the test ends. The server is built
// from its module, see internal/testservers.
package natstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

var noError = basictest.NoError

// WithoutJetStream is the config of a server that stores nothing.
const WithoutJetStream = "# without JetStream"

// OwnJetStream begins a config that contains all settings of JetStream.
const OwnJetStream = "jetstream"

// TB is the part of *testing.T that is needed here.
type TB = servertest.TB

// A Server is one process.
type Server struct {
	servertest.Process

	Addr string

	args  []string
	begin func(*exec.Cmd) error // starts the process; nil: exec.Cmd.Start
}

// starting limits how many servers start at the same time. Otherwise parallel tests would
// start a hundred, and on a slow machine none would answer in time.
var starting = make(chan struct{}, runtime.NumCPU())

// Start starts a server with JetStream, and waits until it answers. config is added to
// its configuration file.
func Start(tb TB, config string, env ...string) *Server {
	tb.Helper()
	s := newServer(tb, "", config)
	s.Run(env...)
	return s
}

// StartWith starts a server with JetStream. It calls begin to start the process, now and
// in each Run.
func StartWith(tb TB, begin func(*exec.Cmd) error) *Server {
	tb.Helper()
	s := newServer(tb, "", "")
	s.begin = begin
	s.Run()
	return s
}

// StartCluster starts n servers that are one cluster, and waits until each answers.
func StartCluster(tb TB, n int) []*Server {
	tb.Helper()
	routes, nodes := make([]string, n), make([]*Server, n)
	for i := range routes {
		routes[i] = "127.0.0.1:" + servertest.FreePort(tb)
	}
	starting <- struct{}{}
	defer func() { <-starting }()
	for i := range nodes {
		nodes[i] = newServer(tb, fmt.Sprintf("n%d", i), fmt.Sprintf(
			"cluster { name: c1, listen: %q, no_advertise: true, routes: [nats://%s] }",
			routes[i], strings.Join(routes, ", nats://")))
		nodes[i].launch()
	}
	for _, s := range nodes {
		s.awaitPort()
	}
	return nodes
}

func newServer(tb TB, name, config string) *Server {
	tb.Helper()
	s := &Server{Process: servertest.Process{TB: tb, Dir: tb.TempDir()}, Addr: "127.0.0.1:" + servertest.FreePort(tb)}
	file := filepath.Join(s.Dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\n", s.Addr)
	if name != "" {
		text += fmt.Sprintf("server_name: %q\n", name)
	}
	if config != WithoutJetStream && !strings.HasPrefix(config, OwnJetStream) {
		text += fmt.Sprintf("jetstream { store_dir: %q, max_file: 1GB, max_mem: 256MB }\n", s.Dir)
	}
	noError(tb, os.WriteFile(file, []byte(text+config+"\n"), 0o600))
	s.args = []string{"-c", file}
	tb.Cleanup(s.Kill)
	return s
}

// Run starts the process again, after Kill or Stop, and waits until it answers.
func (s *Server) Run(env ...string) {
	s.TB.Helper()
	starting <- struct{}{}
	defer func() { <-starting }()
	s.launch(env...)
	s.awaitPort()
}

// Restart kills the server and starts it again.
func (s *Server) Restart() {
	s.Kill()
	s.Run()
}

func (s *Server) launch(env ...string) {
	s.TB.Helper()
	cmd := exec.Command(testservers.Build(s.TB, "nats"), s.args...)
	cmd.Env = append(os.Environ(), env...)
	s.Launch(cmd, s.begin)
}

// awaitPort waits until the server greets a connection.
func (s *Server) awaitPort() {
	s.TB.Helper()
	s.Await(func() error {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err = c.Read(make([]byte, 4)); errors.Is(err, os.ErrDeadlineExceeded) { // it waits for a TLS handshake
			return nil
		}
		return err
	})
}

// Stop ends the process with a signal, as an operator does.
func (s *Server) Stop() { s.End(syscall.SIGTERM, os.Kill) }

// Reload replaces old, the config that Start got, with config, and makes the server read
// its configuration again. The change takes effect soon, not at once.
func (s *Server) Reload(old, config string) {
	s.TB.Helper()
	file := s.args[1]
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(b, []byte(old), []byte(config), 1), 0o600)
	}
	noError(s.TB, err)
	s.Signal(syscall.SIGHUP)
}

var shared servertest.Shared[*Server]

// Shared returns a server with JetStream that runs until Stop. Each test uses its own
// bucket.
func Shared(tb TB) *Server {
	tb.Helper()
	return shared.Get(tb, func(tb TB) *Server { return Start(tb, "") })
}

// Stop ends the shared server. TestMain calls it.
func Stop() { shared.Stop() }
