package pgtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Pause stops all processes of the server without ending them, until Resume.
func (s *Server) Pause() {
	s.TB.Cleanup(s.Resume) // otherwise Kill waits for ever
	s.signal(syscall.SIGSTOP)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	if s.PID() != 0 {
		s.signal(syscall.SIGCONT)
	}
}

// signal sends a signal to all processes of the server. The postmaster gets it first, so
// that it starts no more processes.
func (s *Server) signal(sig syscall.Signal) {
	parent := s.PID()
	_ = syscall.Kill(parent, sig)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path)                // the process may have ended
		_, rest, _ := bytes.Cut(stat, []byte(") ")) // after the process's name
		if fields := strings.Fields(string(rest)); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, sig)
		}
	}
}
