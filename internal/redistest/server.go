// Package redistest starts real Redis servers for tests, on free ports and in temporary
// folders, and stops them when the test ends. Where redis-server is missing the test is
// skipped, or fails if PAWL_TEST_REQUIRE is set.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/testservers"
)

// TB is the part of *testing.T that is needed here. This package does not import testing,
// so that no program takes it along by mistake.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Logf(format string, args ...any)
}

// A Server is one process.
type Server struct {
	Addr string
	Port string
	Dir  string
	Env  []string // beside this process's, from the next Run on

	tb    TB
	args  []string
	cmd   *exec.Cmd
	admin net.Conn // see Admin
}

// Start starts a redis-server with no persistence and these arguments more, and waits
// until it answers.
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, Dir: tb.TempDir(), Port: FreePort(tb)}
	s.Addr = "127.0.0.1:" + s.Port
	s.args = append([]string{"--port", s.Port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.Dir}, args...)
	s.Run()
	tb.Cleanup(s.Kill)
	return s
}

// Run starts the process, again after Kill.
func (s *Server) Run() {
	s.tb.Helper()
	s.run("redis-server", s.args...)
}

func (s *Server) run(command string, args ...string) {
	s.tb.Helper()
	s.launch(command, args...)
	s.await(func(answer string) bool { return !strings.HasPrefix(answer, "-LOADING") })
}

func (s *Server) launch(command string, args ...string) {
	s.tb.Helper()
	path := testservers.Command(s.tb, command, command)
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.tb.Fatalf("%v", err)
	}
	defer log.Close()
	s.cmd = exec.Command(path, args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if len(s.Env) > 0 {
		s.cmd.Env = append(os.Environ(), s.Env...)
	}
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatalf("%v", err)
	}
}

// await waits until the answer to PING is right.
func (s *Server) await(right func(answer string) bool) {
	s.tb.Helper()
	for range 1000 {
		if answer, err := Ask(s.Addr, "PING"); err == nil && right(answer) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	s.tb.Fatalf("%s does not answer:\n%s", s.cmd.Path, said)
}

// Kill kills the process, as kill -9 does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
		s.hangUp()
	}
}

// Do sends a command on a connection of its own, and returns the answer as it was sent.
// An error answer ends the test.
func (s *Server) Do(command ...string) string {
	s.tb.Helper()
	answer, err := Ask(s.Addr, command...)
	if err != nil || strings.HasPrefix(answer, "-") {
		s.tb.Fatalf("%q: %s %v", command, answer, err)
	}
	return answer
}

// Admin is Do on a connection that stays open as long as the server lives: it still works
// when the server accepts no new one.
func (s *Server) Admin(command ...string) string {
	s.tb.Helper()
	if s.admin == nil {
		var err error
		if s.admin, err = connect(s.Addr); err != nil {
			s.tb.Fatalf("%v", err)
		}
		s.tb.Cleanup(s.hangUp)
	}
	answer, err := say(s.admin, command...)
	if err != nil || strings.HasPrefix(answer, "-") {
		s.tb.Fatalf("%q: %s %v", command, answer, err)
	}
	return answer
}

func (s *Server) hangUp() {
	if s.admin != nil {
		_ = s.admin.Close()
		s.admin = nil
	}
}

// Ask sends one command and returns the first bytes of the answer, up to 64 KB.
func Ask(addr string, command ...string) (string, error) {
	c, err := connect(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return say(c, command...)
}

func connect(addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return dialer.DialContext(context.Background(), "tcp", addr)
}

func say(c net.Conn, command ...string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	b := make([]byte, 64<<10)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// FreePort returns a port that no process listens on; nor does one on the port 10000
// above it, where a node of a cluster listens, too.
//
// Tests start many servers at once, some in other processes. If a server got a port that
// another one is about to take, it would die, and its test would talk to the other one.
// So FreePort does not ask the system for any free port: each process takes the ports of
// a range of its own, one after the other, and outgoing connections do not use that
// range.
func FreePort(tb TB) string {
	tb.Helper()
	first := portRange()
	if guard == nil {
		tb.Fatalf("all ranges of ports are taken by other tests")
	}
	for range portsInRange {
		port := first + int(ports.Add(1)%portsInRange)
		if free(port) && free(port+10000) {
			return strconv.Itoa(port)
		}
	}
	tb.Fatalf("no free port from %d on", first)
	return ""
}

const portsInRange, portRanges = 200, 60

var (
	ports atomic.Uint64 // given so far
	guard net.Listener  // says that the range is ours, for as long as the process lives
)

// portRange is the first port of our range, 0 if all ranges are taken. A process owns a
// range as long as it listens on its guard.
var portRange = sync.OnceValue(func() int {
	for i := range portRanges {
		n := (os.Getpid() + i) % portRanges
		var err error
		if guard, err = listen(10000 - portRanges + n); err == nil {
			return 10000 + n*portsInRange
		}
	}
	return 0
})

func listen(port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func free(port int) bool {
	l, err := listen(port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// Field is the value of a line "name:value" in an answer.
func Field(answer, name string) string {
	for line := range strings.SplitSeq(answer, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return v
		}
	}
	return ""
}
