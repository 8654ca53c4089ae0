package servertest

import (
	"os"
	"slices"
	"sync"
)

// A Shared is a server for all tests of a process that do not change it.
type Shared[S any] struct {
	mu     sync.Mutex
	runs   bool
	server S
	ends   []func()
}

// Get returns the server, which the first call starts. It lives until Stop.
func (s *Shared[S]) Get(tb TB, start func(TB) S) S {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs {
		s.server = start(&longLived{tb, &s.ends})
		s.runs = true
	}
	return s.server
}

// Stop ends the server. TestMain calls it.
func (s *Shared[S]) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	s.runs, s.ends = false, nil
}

// longLived is the test that starts a shared server. Its servers and folders last until
// Stop.
type longLived struct {
	TB
	ends *[]func()
}

func (l *longLived) Cleanup(f func()) { *l.ends = append(*l.ends, f) }

func (l *longLived) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "pawl-shared-")
	if err != nil {
		l.Fatalf("%v", err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
