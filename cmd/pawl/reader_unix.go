//go:build unix

package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

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
