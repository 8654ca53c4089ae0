package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl"
)

// resize changes the size of the terminal, as a window does.
func (s *shell) resize(width, height int) {
	s.b.t.Helper()
	s.screen.resize(width, height)
	s.withMaster(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	})
}

// withMaster calls f with the descriptor of the terminal's master.
func (s *shell) withMaster(f func(fd int) error) {
	s.b.t.Helper()
	raw, err := s.master.SyscallConn()
	noError(s.b.t, err)
	controlErr := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	noError(s.b.t, errors.Join(controlErr, err))
}

// awaitScreen waits until the screen shows all patterns at the same time.
func (s *shell) awaitScreen(patterns ...string) {
	s.b.t.Helper()
	missing := ""
	if err := poll(func() bool {
		text := s.screen.text()
		for _, p := range patterns {
			if missing = p; !regexp.MustCompile(p).MatchString(text) {
				return false
			}
		}
		return true
	}); err != nil {
		s.b.t.Fatalf("%v for %q; the screen shows\n%s", err, missing, s.screen.text())
	}
}

// awaitRestored waits until the program has restored the modes of the terminal.
func (s *shell) awaitRestored() {
	s.b.t.Helper()
	eventually(s.b.t, "the terminal is given back", func() bool { return len(s.screen.changedModes()) == 0 })
	if unexpected := s.screen.unexpectedOutput(); len(unexpected) > 0 {
		s.b.t.Errorf("the terminal was sent %q", unexpected)
	}
}

// hold locks names in this process, and returns their leases.
func (b *lab) hold(names ...string) (leases []*pawl.Lease) {
	b.t.Helper()
	for _, name := range names {
		lease := mustGet(b.c.Mutex(name).Lock(b.t.Context()))(b.t)
		leases = append(leases, lease)
	}
	return leases
}

// Top shows a lease, a waiter, a hand-over and the filter. Then it restores the terminal.
func TestTopShowsAHandOverAndTheFilter(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.resize(80, 24)
	s.line("echo before; pawl top --allow-break; echo code $?")
	s.awaitScreen(`nothing is held or waited for`, `q quit`)
	lease := b.hold("nightly", "report:1", "evil \u202e\u05d0")[0]
	s.awaitScreen(`(?m)^.nightly +\S+:\d+ +exclusive +\d+s +\d+s +-$`, `3 names, 3 leases, 0 waiting`, `"evil \\u202e\\u05`)

	waiting, stop := context.WithCancel(t.Context())
	defer stop()
	other := mustGet(pawl.Open(t.Context(), b.url, &pawl.Options{RequestTimeout: time.Minute, Labels: map[string]string{"job": "next"}}))(t)
	t.Cleanup(func() { _ = closeSoon(other) })
	got := make(chan *pawl.Lease, 1)
	go func() {
		if l, err := other.Mutex("nightly").Lock(waiting); err == nil {
			got <- l
		}
	}()
	s.awaitScreen(`(?m)^>nightly .* 1, \d+s$`) // a name with waiters is first
	s.key("\r")
	s.awaitScreen(`nightly is held; 1 waiting`, `(?m)^>holds +exclusive .* \d{16} `, `(?m)^ 1 +exclusive .*job=next`)
	noError(t, lease.Release(t.Context()))
	next := <-got
	s.awaitScreen(`nightly is held\n`, fmt.Sprintf(`(?m)^>holds .* %d .*job=next`, next.Fence()))
	s.key("\x1b[D") // left: back
	s.awaitScreen(`3 names`)

	s.key("/report\r")
	s.awaitScreen(`1 of 3 have report in them`, `(?m)^>report:1 `)
	s.key("\x1b")
	s.awaitScreen(`(?m)^.nightly `)
	s.key("s")
	s.awaitScreen(`sorted: by name`)
	s.key("?")
	s.awaitScreen(`Keys of pawl top`)
	s.key("xq")
	s.awaitRestored()
	s.awaitScreen(`before\n(?s:.*)code 0\n`)
}

// The key b asks for the name, and then breaks only the lease that the screen showed.
func TestTopBreaksTheLeaseThatItHasShown(t *testing.T) {
	b := newLab(t)
	first := b.start("run", "x", "--", "sleep", "1000")
	fence := b.awaitHeld("x").Fence
	s := b.shell()
	s.line("pawl top --allow-break --delay 0; echo code $?")
	s.awaitScreen(`(?m)^>x `)
	s.key("b")
	s.awaitScreen(`Break x\?`, fmt.Sprint(fence))
	s.key("\r")
	s.awaitScreen(`That is not its name`)
	s.key("y\r")
	s.awaitScreen(`That is not its name`)
	s.key("\x1b")
	s.awaitScreen(`nothing was broken`)
	s.key("b")
	s.awaitScreen(`Type the name`)
	s.key("\x1b[200~x\r\x1b[201~") // pasted text ends without enter
	s.awaitScreen(`(?m)^x$`, `Type the name`)
	s.key("\r")
	s.awaitScreen(fmt.Sprintf(`broke x, held by .* \(fence %d\)`, fence))
	first.wantCode(exitLost)

	second := b.start("run", "x", "--", "sleep", "1000")
	fence = b.awaitHeld("x").Fence
	s.awaitScreen(`(?m)^>x `)
	s.key("b")
	s.awaitScreen(fmt.Sprint(fence))
	b.start("break", "--yes", "--delay", "0", "x").wantCode(0)
	second.wantCode(exitLost)
	third := b.hold("x")[0]
	s.awaitScreen(`This lease is over`)
	s.key("x\r")
	s.awaitScreen(fmt.Sprintf(`nothing was broken: no lease of "x" has the fence %d`, fence))
	if err := third.Release(t.Context()); err != nil {
		t.Errorf("the later holder lost its lease: %v", err)
	}
	s.key("q")
	s.awaitRestored()
}

// Ctrl-Z gives the shell its terminal, and fg continues top. Top draws again after a
// change of the window's size.
func TestTopIsSuspendedAndResized(t *testing.T) {
	b := newLab(t)
	b.hold("nightly")
	s := b.shell()
	s.resize(80, 24)
	s.line("pawl top")
	s.awaitScreen(`(?m)^>nightly `, `(?m)^.*WAITING`)
	s.key("\x1a")
	s.await(`(?i)stopped`)
	s.awaitRestored()
	s.line("stty -a; echo between")
	s.await(` icanon`)
	s.await(`\nbetween\r\n`)
	s.line("fg")
	s.awaitScreen(`(?m)^>nightly `)
	s.resize(40, 6)
	s.awaitScreen(`(?m)^>nightly `, `(?m)^ NAME +HELD +LEFT$`, `\? help`)
	s.resize(130, 10)
	s.awaitScreen(`(?m)^>nightly .* \[#+\.*\] `)

	top := s.foregroundProcess()
	for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGCONT} {
		noError(t, syscall.Kill(top, sig))
		if sig == syscall.SIGTSTP {
			s.awaitRestored()
			eventually(t, "it is stopped", func() bool { return state(top) == "T" })
			s.line("fg")
			// SIGCONT comes only after fg: otherwise top would read the shell's line.
			eventually(t, "it goes on", func() bool { return state(top) != "T" })
		}
	}
	s.awaitScreen(`(?m)^>nightly `)
	// A key that arrives while top takes the terminal over again, because of SIGCONT, is
	// discarded.
	eventually(t, "Ctrl-C ends it", func() bool {
		s.key("\x03")
		return len(s.screen.changedModes()) == 0
	})
	s.awaitRestored()
	s.awaitForeground("the shell has its terminal back", func(g int) bool { return g == s.pid })
	s.withMaster(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil && modes.Lflag&unix.ICANON == 0 {
			t.Errorf("the modes of the terminal are not given back: %+v", modes)
		}
		return err
	})
}

// foregroundProcess returns the process in the foreground.
func (s *shell) foregroundProcess() (pid int) {
	s.b.t.Helper()
	s.awaitForeground("top is in the foreground", func(group int) bool { pid = group; return group != s.pid })
	return pid
}

// A signal ends top, which restores the terminal. This terminal takes output, unlike the
// one of TestTopEndsOnATerminalThatTakesNothing.
func TestTopEndsWithASignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			b := newLab(t)
			b.hold("nightly")
			s := b.shell()
			s.line("pawl top; echo code $?")
			s.awaitScreen(`(?m)^>nightly `)
			noError(t, syscall.Kill(s.foregroundProcess(), sig))
			s.awaitScreen(fmt.Sprintf(`code %d\n`, exitSignal+int(sig)))
			s.awaitRestored()
		})
	}
}
