package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardOutput discards the pending output of the terminal, and restarts a terminal that
// Ctrl-S has stopped. It first stops the terminal, because only a restart wakes a write
// that waits for room. It restarts last, so that it does not discard new output.
func discardOutput() {
	out := int(os.Stdout.Fd())
	_ = unix.IoctlSetInt(out, unix.TCXONC, unix.TCOOFF)
	_ = unix.IoctlSetInt(out, unix.TCFLSH, unix.TCOFLUSH)
	_ = unix.IoctlSetInt(out, unix.TCXONC, unix.TCOON)
}
