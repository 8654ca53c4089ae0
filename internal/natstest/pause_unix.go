//go:build unix

package natstest

import "syscall"

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
