//go:build unix

package screen

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func (s *Screen) catchStops() {
	signal.Notify(s.signals, unix.SIGCONT)
	if s.stop != nil {
		signal.Notify(s.signals, unix.SIGTSTP)
	}
}

func (s *Screen) signaled(g os.Signal) {
	if g == unix.SIGTSTP {
		s.suspend(false)
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
