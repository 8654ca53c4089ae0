//go:build unix

// Package cputime returns the processor time that this process has used, for benchmarks
// and for tests of operations that must be cheap.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the time of all processors, in the program and in the system for it.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // this call cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
