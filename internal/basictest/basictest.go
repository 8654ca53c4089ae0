// Package basictest has the steps that tests of all packages share. Like
// internal/servertest it does not import testing.
package basictest

import (
	"errors"
	"flag"
	"time"
)

// TB is the part of testing.TB that is needed here, and of servertest.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// NoError ends the test if there is an error.
func NoError(tb TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
}

// IsError ends the test unless the error is each of the targets.
func IsError(tb TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Fatalf("error is %v, want one that Is %v", err, target)
		}
	}
}

// Must returns a function that returns v, and ends its test if there is an error.
func Must[T any](v T, err error) func(tb TB) T {
	return func(tb TB) T {
		tb.Helper()
		NoError(tb, err)
		return v
	}
}

// Nightly skips a test unless make test-all runs it.
func Nightly(tb TB, why string) {
	tb.Helper()
	if short := flag.Lookup("test.short"); short != nil && short.Value.String() == "true" {
		tb.Skipf("make test-all runs this: %s", why)
	}
}

// hangTime is the time after which a test counts as hanging.
const hangTime = 3 * time.Minute

// Eventually waits until is returns true.
func Eventually(tb TB, what string, is func() bool) {
	tb.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > hangTime {
			tb.Fatalf("it never came to pass: %s", what)
		}
	}
}

// Until tries a step until it returns no error.
func Until(tb TB, what string, try func() error) {
	tb.Helper()
	err := try()
	for began := time.Now(); err != nil; err = try() {
		if time.Since(began) > hangTime {
			tb.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
