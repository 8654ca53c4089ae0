//go:build unix

// Package cputime says how much processor time this process has used: for benchmarks, and
// for tests of what should cost next to nothing.
package cputime

import (
	"syscall"
	"time"
)

// Used is the time of all processors, of the program and of the system for it.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // no process has none
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
