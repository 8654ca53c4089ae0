package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child when the thread that forks it ends. So
// the child dies with pawl, however pawl ends, unless it is a set-user-ID program.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// stopProcess stops this process, and returns when it is continued. It signals the
// calling thread, so that the thread stops before the call returns. If it signaled the
// process, another thread could take the signal later.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// stopAfter stops this process after do has stopped the others of its group, and returns
// when it is continued. A SIGCONT that arrives before the stop prevents the stop, because
// a shell may continue the group, once, as soon as the others have stopped. So stopAfter
// blocks a stop signal, SIGTTIN, sends it to itself, and unblocks it after do: a SIGCONT
// meanwhile discards it. It does not use SIGSTOP, which cannot be blocked, or SIGTSTP,
// which Go catches.
func stopAfter(do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stop, before := unix.Sigset_t{}, unix.Sigset_t{}
	stop.Val[0] = 1 << (unix.SIGTTIN - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &stop, &before); err != nil {
		do()
		stopProcess()
		return
	}
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTTIN)
	do()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
}

// allDead reports whether all processes of a group are dead, even if not yet reaped.
func allDead(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		// PID (NAME) STATE PPID GROUP ...; the name may be anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && !bytes.ContainsAny(fields[0], "ZX") {
			return false
		}
	}
	return true
}
