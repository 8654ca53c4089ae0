package drivertest

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// suite is one topic under test.
type suite struct {
	*testing.T
	Harness
	properties driver.Properties

	breaks, raises, lists, signals, tells, diagnoses bool // what the driver can do

	timeless bool // being late is no excuse, see late.go
}

// parallel lets t run beside the others where time is real and waited for. An injected
// clock is moved for all at once, so there one goes after the other.
func (s *suite) parallel(t *testing.T) {
	if s.Clock == nil {
		t.Parallel()
	}
}

// test runs f as a subtest with two clients and a name of its own.
func (s *suite) test(name string, f func(k *kit)) {
	s.Run(name, func(t *testing.T) {
		s.parallel(t)
		if s.Clock != nil || s.timeless {
			f(newKit(t, s, s.Unit))
			return
		}
		s.attempt(t, f)
	})
}

// exact is test for what happens at an instant, which can only be looked at where the
// clock stands still.
func (s *suite) exact(name string, f func(k *kit)) {
	if s.Clock != nil {
		s.test(name, f)
	}
}
