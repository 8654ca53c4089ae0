//go:build unix && !linux

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent does nothing: this system has no such signal.
func dieWithParent(*syscall.SysProcAttr) {}

// stopProcess stops this process, and returns when it is continued, or in the instant
// before it stops.
func stopProcess() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// stopAfter stops this process after do has stopped the others of its group. A SIGCONT
// between the two is missed.
func stopAfter(do func()) {
	do()
	stopProcess()
}

// allDead is for a system whose init is slow to wait for the dead.
func allDead(int) bool { return false }
