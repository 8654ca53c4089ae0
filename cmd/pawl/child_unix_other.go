//go:build unix && !linux

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent does nothing, because this system has no such signal.
func dieWithParent(*syscall.SysProcAttr) {}

// stopProcess stops this process. It returns when the process is continued, or, if the
// signal takes effect late, just before the process stops.
func stopProcess() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// stopAfter stops this process after do has stopped the others of its group. A SIGCONT
// that comes before the stop has no effect.
func stopAfter(do func()) {
	do()
	stopProcess()
}

// allDead returns false, because this system has no /proc.
func allDead(int) bool { return false }
