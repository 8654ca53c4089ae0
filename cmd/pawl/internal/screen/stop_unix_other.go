//go:build unix && !linux

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// stopProcess stops us, and returns when we are continued.
func stopProcess() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// flush would throw away what the terminal has not taken yet. Here it waits.
func flush(*os.File) {}
