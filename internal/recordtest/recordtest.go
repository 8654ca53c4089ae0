// Package recordtest records the failures of a test, for tests of assertions and checks.
package recordtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// A Recorder is a test that records calls of Errorf and does not fail.
type Recorder struct {
	testing.TB
	cleanups []func()

	mu       sync.Mutex // protects failures
	failures []string
}

// Errorf records a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Cleanup makes End call f.
func (r *Recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// End runs the cleanups, the last one first, and returns the failures.
func (r *Recorder) End() []string {
	for _, end := range slices.Backward(r.cleanups) {
		end()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}
