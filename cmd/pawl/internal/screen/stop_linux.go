package screen

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopProcess stops this process, and returns when it is continued. It signals this
// thread, which stops at once, and the others with it. If it signaled the process,
// another thread might get the signal, and this thread would run on for a while.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// flush discards the pending output of the terminal, and restarts a terminal that Ctrl-S
// has stopped. It restarts last, so that it does not discard new output. It stops the
// terminal first, because discarding does not wake a write that waits for room, but the
// end of a stop does.
func flush(out *os.File) {
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOOFF)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCFLSH, unix.TCOFLUSH)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOON)
}
