// Package redistest starts real Redis servers for tests, on free ports and in temporary
// folders, and stops them when the test ends. If redis-server is missing, the test is
// skipped, or fails if PAWL_TEST_REQUIRE is set.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// TB is the part of *testing.T that is needed here.
type TB = servertest.TB

// A Server is one process.
type Server struct {
	servertest.Process

	Addr string
	Port string
	Env  []string // added to the environment of the process in each Run

	args  []string
	admin net.Conn // see Admin
}

// Start starts a redis-server without persistence, with these additional arguments, and
// waits until it answers.
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	s.args = append([]string{"--port", s.Port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.Dir}, args...)
	s.Run()
	return s
}

func newServer(tb TB) *Server {
	tb.Helper()
	port := servertest.FreePort(tb)
	s := &Server{Process: servertest.Process{TB: tb, Dir: tb.TempDir()}, Port: port, Addr: "127.0.0.1:" + port}
	tb.Cleanup(s.Kill)
	return s
}

// Run starts the process, for the first time or after Kill.
func (s *Server) Run() {
	s.TB.Helper()
	s.run("redis-server", s.args...)
}

func (s *Server) run(command string, args ...string) {
	s.TB.Helper()
	s.launch(command, args...)
	s.await(func(answer string) bool { return !strings.HasPrefix(answer, "-LOADING") })
}

func (s *Server) launch(command string, args ...string) {
	s.TB.Helper()
	cmd := exec.Command(testservers.Command(s.TB, command, command), args...)
	if len(s.Env) > 0 {
		cmd.Env = append(os.Environ(), s.Env...)
	}
	s.Launch(cmd, nil)
}

// await waits until the answer to PING is accepted.
func (s *Server) await(accept func(answer string) bool) {
	s.TB.Helper()
	s.Await(func() error {
		answer, err := Ask(s.Addr, "PING")
		if err == nil && !accept(answer) {
			err = errors.New(answer)
		}
		return err
	})
}

// Kill kills the process, as kill -9 does.
func (s *Server) Kill() {
	s.Process.Kill()
	s.closeAdmin()
}

// Do sends a command on a connection of its own, and returns the raw answer.
// An error answer ends the test.
func (s *Server) Do(command ...string) string {
	s.TB.Helper()
	answer, err := Ask(s.Addr, command...)
	if err != nil || strings.HasPrefix(answer, "-") {
		s.TB.Fatalf("%q: %s %v", command, answer, err)
	}
	return answer
}

// Admin sends a command as Do does, but on a connection that stays open until the server
// ends. So it works even while the server accepts no connections.
func (s *Server) Admin(command ...string) string {
	s.TB.Helper()
	if s.admin == nil {
		var err error
		if s.admin, err = connect(s.Addr); err != nil {
			s.TB.Fatalf("%v", err)
		}
		s.TB.Cleanup(s.closeAdmin)
	}
	answer, err := exchange(s.admin, command...)
	if err != nil || strings.HasPrefix(answer, "-") {
		s.TB.Fatalf("%q: %s %v", command, answer, err)
	}
	return answer
}

func (s *Server) closeAdmin() {
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
	return exchange(c, command...)
}

func connect(addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return dialer.DialContext(context.Background(), "tcp", addr)
}

func exchange(c net.Conn, command ...string) (string, error) {
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

// Field returns the value of a line "name:value" in an answer, or "".
func Field(answer, name string) string {
	for line := range strings.SplitSeq(answer, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return v
		}
	}
	return ""
}
