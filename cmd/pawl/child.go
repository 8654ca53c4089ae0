package main

import "time"

// A child is the command that runs under the lock, and its process group. Each system has
// its own: see child_unix.go and child_windows.go. They have in common
//
//	startChild(path, argv, env, signals)  starts it, in a group of its own
//	pass(s)                               hands a signal on to the group
//	suspend(s, held)                      what follows when it stopped, as by Ctrl-Z
//	check(ctx, line)                      runs a shell line beside it, and says how that ended
//	stop(killAt)                          ends the group, and says whether nothing of it is left
//	key()                                 the signal that ended it, if a key of the terminal sent that
//	close()                               gives back what it took, such as the terminal
//
// and the channels ended, which receives its end once, and paused.

// An ending is the end of a child: its exit code, and whether a signal ended it.
type ending struct {
	code int  // the exit code, 128 + n after signal n
	cut  bool // a signal ended it
}

// killPatience is the time for which pawl waits after SIGKILL for a group to end, before
// it reports that the group has not, and goes on.
const killPatience = 2 * time.Second
