//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// catchSignals catches what is passed on to the child. What we were started to ignore, as by nohup, stays
// ignored, by the child too.
func catchSignals() chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	// Nobody reads our standard error any more: that is no reason to end, and to leave the child alone.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return caught
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) } //nolint:forcetypeassert // all are, on these systems
