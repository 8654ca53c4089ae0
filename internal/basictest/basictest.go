// Package basictest has helpers for the tests of all packages. Like internal/servertest
// it does not import testing.
package basictest

import (
	"errors"
	"flag"
	"time"
)

// TB has the methods of testing.TB, and of servertest.TB, that this package uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// NoError ends the test if err is not nil.
func NoError(tb TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
}

// IsError ends the test unless errors.Is reports true for each of the targets.
func IsError(tb TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Fatalf("error is %v, want one that Is %v", err, target)
		}
	}
}

// Must returns a function that returns v, or ends the test if err is not nil.
func Must[T any](v T, err error) func(tb TB) T {
	return func(tb TB) T {
		tb.Helper()
		NoError(tb, err)
		return v
	}
}

// SkipIfShort skips a test unless make test-all runs it. reason says why it is slow.
func SkipIfShort(tb TB, reason string) {
	tb.Helper()
	if short := flag.Lookup("test.short"); short != nil && short.Value.String() == "true" {
		tb.Skipf("make test-all runs this: %s", reason)
	}
}

// hangTime is the time after which a test counts as hanging.
const hangTime = 3 * time.Minute

// Eventually waits until condition returns true.
func Eventually(tb TB, what string, condition func() bool) {
	tb.Helper()
	for began := time.Now(); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > hangTime {
			tb.Fatalf("not true within %v: %s", hangTime, what)
		}
	}
}

// Until repeats a step until it returns no error.
func Until(tb TB, what string, step func() error) {
	tb.Helper()
	err := step()
	for began := time.Now(); err != nil; err = step() {
		if time.Since(began) > hangTime {
			tb.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
