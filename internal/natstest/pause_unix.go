//go:build unix

package natstest

import (
	"bytes"
	"os"
	"syscall"
)

// Pause stops the process until resume is called.
func (s *Server) Pause() (resume func()) {
	s.tb.Helper()
	process := s.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatalf("%v", err)
	}
	return func() { _ = process.Signal(syscall.SIGCONT) }
}

// Stop ends the process as an operator does.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Reload makes the server read its configuration again, with config in place of the
// config that Start got. The change takes effect soon, not at once.
func (s *Server) Reload(was, config string) {
	s.tb.Helper()
	file := s.args[1]
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(b, []byte(was), []byte(config), 1), 0o600)
	}
	if err == nil {
		err = s.cmd.Process.Signal(syscall.SIGHUP)
	}
	if err != nil {
		s.tb.Fatalf("%v", err)
	}
}
