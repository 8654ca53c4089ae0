package pgtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// signal signals the postmaster first, which then starts no more processes.
func (s *Server) signal(what syscall.Signal) {
	_ = syscall.Kill(s.PID(), what)
	for _, p := range s.processes() {
		_ = syscall.Kill(p.pid, what)
	}
}

// CPU is the CPU time of the server's current processes.
func (s *Server) CPU() (t time.Duration) {
	for _, p := range s.processes() {
		t += p.worked
	}
	return t
}

// one is a process of the server's.
type one struct {
	pid    int
	worked time.Duration
}

// processes are the postmaster and its children.
func (s *Server) processes() (all []one) {
	parent := s.PID()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(stat, []byte(") ")) // behind its name
		fields := strings.Fields(string(rest))
		if len(fields) < 13 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if fields[1] != strconv.Itoa(parent) && pid != parent {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		all = append(all, one{pid, time.Duration(user+system) * time.Second / 100}) // Linux counts in hundredths
	}
	return all
}
