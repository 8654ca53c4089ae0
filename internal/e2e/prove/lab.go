//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// A lab has the servers of one run. The packages that start servers for tests take it for
// a test.
type lab struct {
	mu   sync.Mutex // protects ends
	ends []func()
}

// labError is a problem with a server. Fatalf panics with it.
type labError struct{ error }

func (*lab) Helper() {}

// Cleanup is as in package testing.
func (l *lab) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, f)
}

// TempDir is as in package testing.
func (l *lab) TempDir() string {
	dir, err := os.MkdirTemp("", "pawl-prove-")
	if err != nil {
		l.Fatalf("%v", err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Errorf ends the run, as Fatalf does: a run in which a server failed measures nothing.
func (l *lab) Errorf(format string, args ...any) { l.Fatalf(format, args...) }

// Fatalf ends the run.
func (l *lab) Fatalf(format string, args ...any) { panic(labError{fmt.Errorf(format, args...)}) }

// Skipf ends the run, too: the caller has asked for this engine.
func (l *lab) Skipf(format string, args ...any) { l.Fatalf(format, args...) }

// Logf prints to standard error, because standard output has the table.
func (*lab) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// close ends all servers. It recovers a panic of Fatalf, and adds its error to err.
func (l *lab) close(err *error) {
	*err = errors.Join(*err, problem(recover()))
	l.mu.Lock()
	ends := l.ends
	l.ends = nil
	l.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
}

// problem is the error of a Fatalf that was recovered.
func problem(recovered any) error {
	switch p := recovered.(type) {
	case nil:
		return nil
	case labError:
		return p.error
	default:
		panic(p)
	}
}
