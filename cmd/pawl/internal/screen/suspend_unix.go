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

func (s *Screen) handleSignal(sig os.Signal) {
	switch sig {
	case unix.SIGTSTP:
		s.Suspend(false)
	case unix.SIGWINCH:
		s.resized.Store(true)
	default: // SIGCONT: another program may have had the terminal
		s.withoutTerminal(func() {})
	}
}

// Suspend gives the terminal back, and stops this process, or with group its whole group,
// as Ctrl-Z does outside of raw mode. When the process is continued, Suspend takes over
// the terminal again, and returns.
func (s *Screen) Suspend(group bool) {
	if s.stop == nil {
		return
	}
	s.withoutTerminal(func() {
		signal.Stop(s.signals) // so that the SIGCONT that ends the stop does not cause another one
		signal.Ignore(unix.SIGTSTP)
		s.stop(group)
		s.catchSignals()
	})
}

// withoutTerminal calls f while the terminal is given back.
func (s *Screen) withoutTerminal(f func()) {
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
