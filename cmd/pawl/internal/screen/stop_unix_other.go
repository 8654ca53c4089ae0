//go:build unix && !linux

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// stopProcess stops this process, and returns when it is continued.
func stopProcess() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// flush would discard the pending output of the terminal. Here it does nothing, so Close
// waits for that output.
func flush(*os.File) {}
