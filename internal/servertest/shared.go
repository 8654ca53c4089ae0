package servertest

import (
	"os"
	"slices"
	"sync"
)

// A Shared is a server for all tests of a process. The tests must not disturb it.
type Shared[S any] struct {
	mu       sync.Mutex
	running  bool
	server   S
	cleanups []func()
}

// Get returns the server. The first call starts it, and it runs until Stop.
func (s *Shared[S]) Get(tb TB, start func(TB) S) S {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.server = start(&longLived{tb, &s.cleanups})
		s.running = true
	}
	return s.server
}

// Stop ends the server. TestMain calls it.
func (s *Shared[S]) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range slices.Backward(s.cleanups) {
		end()
	}
	s.running, s.cleanups = false, nil
}

// longLived is the test that starts a shared server, but its cleanups run in Stop.
type longLived struct {
	TB
	cleanups *[]func()
}

func (l *longLived) Cleanup(f func()) { *l.cleanups = append(*l.cleanups, f) }

func (l *longLived) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "pawl-shared-")
	if err != nil {
		l.Fatalf("%v", err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
