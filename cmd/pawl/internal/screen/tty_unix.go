//go:build unix

package screen

import (
	"os"
	"sync"
	"time"

	"github.com/gdamore/tcell/v3"
	"golang.org/x/term"
)

// A tty is the terminal, for tcell. The tty of tcell has two defects. It makes its file
// blocking, so a read that begins before Stop takes the first key after the next Start.
// And it draws in a goroutine for which nothing waits.
type tty struct {
	path  string
	mu    sync.Mutex // protects f: a read may begin while the tty stops
	f     *os.File
	saved *term.State
}

func newTerminal(o tcell.TerminfoScreenOption) (tcell.Screen, error) {
	return tcell.NewTerminfoScreenFromTty(&tty{path: "/dev/tty"}, o)
}

func (t *tty) Start() error {
	f, err := os.OpenFile(t.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := control(f, func(fd int) (err error) {
		t.saved, err = term.MakeRaw(fd)
		return err
	}); err != nil {
		_ = f.Close()
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.f = f
	return nil
}

// control calls an ioctl. It does not use File.Fd, which makes the file blocking.
func control(f *os.File, ioctl func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = ioctl(int(fd)) })
	if controlErr != nil {
		return controlErr
	}
	return err
}

func (t *tty) file() *os.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.f
}

func (t *tty) Read(b []byte) (int, error)  { return t.file().Read(b) }
func (t *tty) Write(b []byte) (int, error) { return t.file().Write(b) }

// Drain ends the read that is under way, except where the system cannot poll a terminal.
func (t *tty) Drain() error { return t.file().SetReadDeadline(time.Now()) }

func (t *tty) Stop() error {
	f := t.file()
	err := control(f, func(fd int) error { return term.Restore(fd, t.saved) })
	_ = f.Close()
	return err
}

// Close has nothing to do after Stop.
func (t *tty) Close() error { return nil }

// NotifyResize does nothing, because [Screen] reads the size itself.
func (t *tty) NotifyResize(chan<- bool) {}

func (t *tty) WindowSize() (size tcell.WindowSize, err error) {
	err = control(t.file(), func(fd int) error {
		size.Width, size.Height = sizeOf(fd)
		return nil
	})
	return size, err
}
