// Package redistest starts real Redis servers for tests, on free ports and in temporary folders, and stops them when the
// test ends. Where redis-server is missing the test is skipped, or fails if PAWL_TEST_REQUIRE is set.
package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// TB is what is needed of a *testing.T. This package does not import testing, so that nobody takes it along by mistake.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Logf(format string, args ...any)
}

// A Server is one process.
type Server struct {
	Addr string
	Port string
	Dir  string

	tb   TB
	args []string
	cmd  *exec.Cmd
}

// Start starts a redis-server with no persistence and these arguments more, and waits until it answers.
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, Dir: tb.TempDir(), Port: freePort(tb)}
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
	path, err := exec.LookPath(command)
	if err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			s.tb.Fatalf("%s is missing, and PAWL_TEST_REQUIRE is set", command)
		}
		s.tb.Skipf("%s is missing: install it to run this test", command)
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.tb.Fatalf("%v", err)
	}
	defer log.Close()
	s.cmd = exec.Command(path, args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatalf("%v", err)
	}
	for range 1000 {
		if answer, err := Ask(s.Addr, "PING"); err == nil && !strings.HasPrefix(answer, "-LOADING") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	s.tb.Fatalf("%s does not answer:\n%s", command, said)
}

// Kill kills the process, as kill -9 does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Do sends a command on a connection of its own, and returns the answer as it came. An error answer ends the test.
func (s *Server) Do(command ...string) string {
	s.tb.Helper()
	answer, err := Ask(s.Addr, command...)
	if err != nil || strings.HasPrefix(answer, "-") {
		s.tb.Fatalf("%q: %s %v", command, answer, err)
	}
	return answer
}

// Ask sends one command and returns what comes back first, up to 64 KB.
func Ask(addr string, command ...string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
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

func freePort(tb TB) string {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("%v", err)
		}
		port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener has one
		_ = l.Close()
		if port < 55000 { // a node of a cluster listens at port + 10000, too
			return strconv.Itoa(port)
		}
	}
	tb.Fatalf("no free port below 55000")
	return ""
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
