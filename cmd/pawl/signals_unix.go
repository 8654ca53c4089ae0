//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// catchSignals catches what is passed on to the child. What we were started to ignore, as
// by nohup, stays ignored, by the child too.
func catchSignals() chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	// Nobody reads our standard error any more: that is no reason to end, and to leave
	// the child alone.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return caught
}

// sharedEnd ends our group as the key of the terminal would have done that ended the
// child: without us it would have reached our group, too. A script that runs us would
// otherwise go on with its next line; and one for bash does so unless we die of the
// signal ourselves. For the shell that is the same exit code, 128 + n.
func sharedEnd(s os.Signal) {
	if s == unix.SIGINT {
		signal.Reset(s)
	} // else SIGQUIT, of which a Go program would not die, but print its stacks
	if unix.Kill(0, s.(syscall.Signal)) == nil && s == unix.SIGINT { //nolint:forcetypeassert // see below
		time.Sleep(time.Second) // it comes now
	}
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) } //nolint:forcetypeassert // all are, on these systems

// continues reports whether a signal only has a process go on that was stopped.
func continues(s os.Signal) bool { return s == unix.SIGCONT }

// stopKey catches Ctrl-Z where no command runs, once one has run: Go does not give a
// signal back to the system that was caught, so we have to stop ourselves.
type stopKey chan os.Signal

func (k *stopKey) catch() {
	if *k == nil {
		*k = make(chan os.Signal, 1)
	}
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(*k, unix.SIGTSTP)
	}
}

// leave is for when a command runs, and the key is for that.
func (k *stopKey) leave() {
	if *k == nil {
		return
	}
	signal.Stop(*k)
	select {
	case <-*k:
	default:
	}
}

// stop stops us, and returns when we are continued. The others of our group have had the
// key too.
func (k *stopKey) stop() {
	if unix.Getpgrp() != sessionID() { // else nobody would continue us
		stopProcess()
	}
}
