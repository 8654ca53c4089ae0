package main

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the child killed when the thread that forks it ends, and so when pawl does, however.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// stopProcess stops this process, and returns when it is continued. The signal is for the calling thread, so it
// works before the call returns; one for the process might be taken by another thread, later.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
