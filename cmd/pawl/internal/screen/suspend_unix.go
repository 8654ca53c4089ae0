//go:build unix

package screen

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

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
	signal.Stop(s.signals) // the SIGCONT that ends the stop is no reason to suspend again
	signal.Ignore(unix.SIGTSTP)
	s.stop(group)
	s.catchSignals()
	s.resumeLocked()
}
