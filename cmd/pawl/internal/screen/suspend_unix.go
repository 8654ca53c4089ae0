//go:build unix

package screen

import (
	"os"
	"os/signal"

	"github.com/gdamore/tcell/v3"
	"golang.org/x/sys/unix"
)

// A quietTTY does not notify tcell of a new size: tcell would draw in a goroutine of its
// own, and not wait for it when it gives the terminal back.
type quietTTY struct{ tcell.Tty }

func (quietTTY) NotifyResize(chan<- bool) {}

func newTerminal(o tcell.TerminfoScreenOption) (tcell.Screen, error) {
	tty, err := tcell.NewDevTty()
	if err != nil {
		return nil, err
	}
	return tcell.NewTerminfoScreenFromTty(quietTTY{tty}, o)
}

func (s *Screen) catchSignals() {
	signal.Notify(s.signals, unix.SIGCONT, unix.SIGWINCH)
	if s.stop != nil {
		signal.Notify(s.signals, unix.SIGTSTP)
	}
}

func (s *Screen) signaled(g os.Signal) {
	switch g {
	case unix.SIGTSTP:
		s.suspend(false)
		return
	case unix.SIGWINCH:
		s.resized.Store(true)
		return
	}
	s.mu.Lock() // SIGCONT: another program may have had the terminal
	defer s.mu.Unlock()
	if !s.closed {
		_ = s.giveBack(func() { _ = s.terminal.Suspend() })
		s.resumeLocked()
	}
}

func (s *Screen) suspend(group bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stop == nil {
		return
	}
	_ = s.giveBack(func() { _ = s.terminal.Suspend() })
	signal.Ignore(unix.SIGTSTP) // stop sends it to the group
	s.stop(group)
	signal.Notify(s.signals, unix.SIGTSTP)
	s.resumeLocked()
}
