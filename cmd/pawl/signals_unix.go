//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// catchSignals catches the signals to pass on to the child. A signal that pawl ignored
// from its start, as under nohup, stays ignored by both.
func catchSignals() chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	// Catch SIGPIPE: pawl must watch the child even if the reader of standard error has
	// ended.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return caught
}

// endGroup sends pawl's group the signal of the key that has ended the child. Without
// pawl, the key would have reached this group, too. Otherwise a script that runs pawl
// would go on with its next line. A bash script goes on unless pawl itself dies of the
// signal. The shell's exit code is the same, 128 + n.
func endGroup(s os.Signal) {
	if s == unix.SIGINT {
		signal.Reset(s)
	} // a Go program does not die of SIGQUIT, but prints its stacks
	if unix.Kill(0, s.(syscall.Signal)) == nil && s == unix.SIGINT { //nolint:forcetypeassert // see below
		time.Sleep(time.Second) // until the signal arrives
	}
}

// killSelf ends pawl with a signal, so that a bash script does not go on after Ctrl-C.
// The shell's exit code is 128 + n.
func killSelf(s os.Signal) {
	signal.Reset(s)
	if unix.Kill(unix.Getpid(), s.(syscall.Signal)) == nil { //nolint:forcetypeassert // all are, on these systems
		time.Sleep(time.Second) // until the signal arrives
	}
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) } //nolint:forcetypeassert // all are, on these systems

func signalName(s syscall.Signal) string { return unix.SignalName(s) }

// asksToEnd reports whether a signal asks a process to end. SIGHUP may mean "read your
// configuration again".
func asksToEnd(s os.Signal) bool { return s == unix.SIGINT || s == unix.SIGTERM || s == unix.SIGQUIT }

// isContinue reports whether a signal only continues a stopped process.
func isContinue(s os.Signal) bool { return s == unix.SIGCONT }

// A stopKey catches Ctrl-Z after the first command, while no command runs. Go does not
// restore the default action of a signal that was caught, so pawl has to stop itself.
type stopKey chan os.Signal

func (k stopKey) catch() {
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(k, unix.SIGTSTP)
	}
}

// stopCatching stops catching Ctrl-Z, because a command starts, which will get the key.
func (k stopKey) stopCatching() {
	signal.Stop(k)
	select {
	case <-k:
	default:
	}
}

// stopPawl stops pawl, and returns when it is continued. The terminal has sent the signal
// to the other processes of the group, too.
func (stopKey) stopPawl() {
	if unix.Getpgrp() != sessionID() { // because no shell would continue a session's first process
		stopProcess()
	}
}

// stopFunc returns a function that stops pawl as Ctrl-Z does, and returns when pawl is
// continued. With group, the function stops the whole group of pawl, because a shell may
// wait for a script of that group. Callers of the function must ignore SIGTSTP. stopFunc
// returns nil if pawl must not be stopped.
func stopFunc() func(group bool) {
	if signal.Ignored(unix.SIGTSTP) || unix.Getpgrp() == sessionID() {
		return nil // no shell would continue the first process of a session
	}
	return func(group bool) {
		if group {
			_ = unix.Kill(0, unix.SIGTSTP)
		}
		stopProcess()
	}
}

// awaitNoReader waits until no process can read the standard output of this one. It
// returns false if the system does not report that.
func awaitNoReader() bool {
	for {
		out := []unix.PollFd{{Fd: 1}} // without events, poll reports only the end of the reader
		_, err := unix.Poll(out, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		default:
			return out[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
}

var errNoReader = stoppedBy(unix.SIGPIPE) // as after a write without a reader
