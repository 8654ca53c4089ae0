package screen

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopProcess stops this process, and returns when it is continued. Another thread may
// get a signal to the process, and this thread would run on for a while. A signal to the
// thread itself stops it at once, and the others with it.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// flush discards the pending output of the terminal, and restarts a terminal that Ctrl-S
// has stopped. It discards first, so that it does not discard what is written after the
// restart. Before that it stops the terminal itself, because a flush does not wake a
// write that waits for room, but the end of a stop does.
func flush(out *os.File) {
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOOFF)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCFLSH, unix.TCOFLUSH)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOON)
}
