//go:build unix

package mysqltest

import "syscall"

// Pause stops the process without ending it, until Resume.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
