//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// A lab has the servers of one run. It implements the interface of a test for the
// packages that start servers.
type lab struct {
	mu       sync.Mutex // protects cleanups
	cleanups []func()
}

// labError is the value with which Fatalf panics.
type labError struct{ error }

func (*lab) Helper() {}

// Cleanup is as in package testing.
func (l *lab) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
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

// Errorf ends the run, as Fatalf does, because a run with a failed server proves nothing.
func (l *lab) Errorf(format string, args ...any) { l.Fatalf(format, args...) }

// Fatalf ends the run.
func (l *lab) Fatalf(format string, args ...any) { panic(labError{fmt.Errorf(format, args...)}) }

// Skipf ends the run, too, because the user has asked for this engine.
func (l *lab) Skipf(format string, args ...any) { l.Fatalf(format, args...) }

// Logf prints to standard error, because standard output has the table.
func (*lab) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// close ends all servers. It recovers a panic of Fatalf, and adds its error to err.
func (l *lab) close(err *error) {
	*err = errors.Join(*err, problem(recover()))
	l.mu.Lock()
	cleanups := l.cleanups
	l.cleanups = nil
	l.mu.Unlock()
	for _, end := range slices.Backward(cleanups) {
		end()
	}
}

// problem returns the error of a recovered Fatalf. It panics again with other values.
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
