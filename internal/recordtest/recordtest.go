// Package recordtest records the failures of a test, for tests of assertions, checks and
// steps.
package recordtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// A Recorder is a test whose calls of Errorf are recorded, and do not fail it.
type Recorder struct {
	testing.TB
	ends []func()

	mu   sync.Mutex // protects said
	said []string
}

// Errorf records a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// Cleanup makes End call f.
func (r *Recorder) Cleanup(f func()) { r.ends = append(r.ends, f) }

// End runs the cleanups, the last one first, and returns all failures.
func (r *Recorder) End() []string {
	for _, end := range slices.Backward(r.ends) {
		end()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}
