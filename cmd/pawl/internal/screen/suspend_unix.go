//go:build unix

package screen

import (
	"errors"
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
		s.Suspend(false)
	case unix.SIGWINCH:
		s.resized.Store(true)
	default: // SIGCONT: another program may have had the terminal
		s.without(func() {})
	}
}

// Suspend gives the terminal back, and stops this process, or with group its group, as
// Ctrl-Z does outside of raw mode. In raw mode Ctrl-Z is a key like others. Suspend
// returns when the process is continued, and has taken over the terminal again.
func (s *Screen) Suspend(group bool) {
	if s.stop == nil {
		return
	}
	s.without(func() {
		signal.Stop(s.signals) // the SIGCONT that ends the stop is no reason to suspend again
		signal.Ignore(unix.SIGTSTP)
		s.stop(group)
		s.catchSignals()
	})
}

// without calls f while the terminal is given back.
func (s *Screen) without(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	_ = s.giveBack(func() { _ = s.terminal.Suspend() })
	f()
	for errors.Is(s.terminal.Resume(), unix.EINTR) {
	}
}
