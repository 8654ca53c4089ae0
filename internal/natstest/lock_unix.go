//go:build unix

package natstest

import (
	"os"
	"syscall"
)

// lock waits for the lock of a file, which ends with its process at the latest.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// Pause stops the process, and lets nothing of it run until resume is called.
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
