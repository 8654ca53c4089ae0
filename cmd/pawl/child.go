package main

import "time"

// A child is the command that runs under the lock, and its process group. child_unix.go
// and child_windows.go implement it, both with these methods:
//
//	startChild(path, argv, env, signals)  starts it, in a group of its own
//	pass(s)                               sends a signal to the group
//	handleStop(s, held)                   handles its stop, as by Ctrl-Z
//	check(ctx, line)                      runs a shell line meanwhile, and returns its error
//	stop(killAt)                          ends the group, and reports whether it is gone
//	key()                                 the signal of a terminal's key that ended it
//	close()                               releases the terminal and other resources
//
// and with the channels ended, which receives its end once, paused and ctrlZ.

// An ending is the end of a child: its exit code, and whether a signal ended it.
type ending struct {
	code int  // the exit code, 128 + n after signal n
	cut  bool // a signal ended it
}

// killPatience is the time for which pawl waits for the end of a group after SIGKILL.
// Then it reports that the group has not ended, and goes on.
const killPatience = 2 * time.Second
