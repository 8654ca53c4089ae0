package screen

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopProcess stops us, and returns when we are continued. A signal to the process may
// reach another thread, and this one would go on for a while; one to the thread itself
// stops it at once, and the others with it.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// flush throws away what the terminal has not taken yet, and has it take what comes now
// if somebody has stopped it, as Ctrl-S does. In this order: what is written once it goes
// on is not thrown away. It stops the terminal itself first: a flush does not wake a
// write that waits for room, and the end of a stop does.
func flush(out *os.File) {
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOOFF)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCFLSH, unix.TCOFLUSH)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCXONC, unix.TCOON)
}
