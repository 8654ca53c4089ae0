package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/internal/redistest"
)

// tty opens the terminal's slave, whose name the shell must have written to the file tty.
func (s *shell) tty() *os.File {
	s.b.t.Helper()
	tty := mustGet(os.OpenFile(s.b.awaitFile("tty"), os.O_RDWR|unix.O_NOCTTY, 0))(s.b.t)
	s.b.t.Cleanup(func() { _ = tty.Close() })
	return tty
}

// A signal ends top even if the terminal takes no output. When it takes output again, its
// modes are restored.
func TestTopEndsOnATerminalThatTakesNothing(t *testing.T) {
	t.Run("a connection that hangs", func(t *testing.T) {
		b := newLab(t)
		b.hold("nightly")
		s := b.shell()
		s.line("tty > tty; pawl top")
		s.awaitScreen(`(?m)^>nightly `)
		top := s.foregroundProcess()
		s.readMu.Lock() // no further read begins, so the terminal hangs
		locked := true
		defer func() {
			if locked {
				s.readMu.Unlock()
			}
		}()
		tty := s.tty()
		width, stuck := 79, 0
		eventually(t, "the frames fill the terminal, and a write blocks", func() bool {
			width = 159 - width
			s.withMaster(func(fd int) error {
				return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
			})
			room := []unix.PollFd{{Fd: int32(tty.Fd()), Events: unix.POLLOUT}}
			if n, err := unix.Poll(room, 0); err == nil && n == 0 {
				stuck++
			} else {
				stuck = 0
			}
			return stuck > 50
		})
		noError(t, syscall.Kill(top, syscall.SIGTERM))
		eventually(t, "it has ended", func() bool { return state(top) == "" })
		s.readMu.Unlock()
		locked = false
		eventually(t, "the terminal is given back", func() bool { return len(s.screen.changedModes()) == 0 })
	})
	t.Run("a terminal that was stopped", func(t *testing.T) {
		b := newLab(t)
		b.hold("nightly")
		s := b.shell()
		s.line("tty > tty; pawl top")
		s.awaitScreen(`(?m)^>nightly `)
		top := s.foregroundProcess()
		noError(t, unix.IoctlSetInt(int(s.tty().Fd()), unix.TCXONC, unix.TCOOFF))
		s.key("?")
		noError(t, syscall.Kill(top, syscall.SIGTERM))
		eventually(t, "it has ended", func() bool { return state(top) == "" })
		s.awaitRestored()
	})
}

// Go restores the terminal before it prints a panic.
func TestTheTerminalIsRestoredBeforeAPanicIsPrinted(t *testing.T) {
	s := newLab(t).shell()
	s.line("echo before; panics-on-the-screen; echo code $?")
	s.awaitScreen(`before\n(?s:.*)panic: on purpose(?s:.*)code 2\n`)
	s.awaitRestored()
	s.line("stty -a")
	s.await(` icanon`)
}

func init() { otherCommands["panics-on-the-screen"] = panicOnTheScreen }

func panicOnTheScreen() {
	s, err := screen.Open(nil)
	must(err)
	s.Draw([]screen.Line{screen.Text("drawn", 0)})
	s.Go(func() { panic("on purpose") })
	for {
		<-s.Events()
	}
}

// When the backend hangs, top shows since when. Keys still work. When the backend answers
// again, top goes on by itself.
func TestTopShowsThatTheBackendHangs(t *testing.T) {
	skipIfShort(t, "it waits for real time to pass")
	b := newLab(t)
	server := redistest.Start(t)
	t.Cleanup(server.Resume)
	c := mustGet(pawl.Open(t.Context(), "redis://"+server.Addr, nil))(t)
	t.Cleanup(func() { _ = closeSoon(c) })
	mustGet(c.Mutex("nightly").Lock(t.Context()))(t)
	s := b.shell()
	s.line("PAWL_URL=redis://" + server.Addr + " pawl top; echo code $?")
	s.awaitScreen(`(?m)^>nightly `)
	server.Pause()
	s.awaitScreen(`the backend has not answered since \d\d:\d\d:\d\d \(\d+s\)\n`)
	s.key("/night\r")
	s.awaitScreen(`have night in them`)
	s.awaitScreen(`the backend has not answered since \d\d:\d\d:\d\d \(\d+s\): \S`) // the scan has failed
	server.Resume()
	eventually(t, "it goes on", func() bool { return !strings.Contains(s.screen.text(), "has not answered") })
	s.awaitScreen(`(?m)^>nightly `)
	server.Pause()
	s.key("q")
	s.awaitScreen(`code 0\n`)
	s.awaitRestored()
}

// If nothing was ever locked, top waits for the first lock. Without --allow-break it
// breaks no lease.
func TestTopWaitsForTheFirstLock(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line("unset PAWL_URL; export XDG_STATE_HOME=" + b.file("state") + "; pawl top; echo code $?")
	s.awaitScreen(`nothing was ever locked here:(?s:.*)does\s+not\s+exist\s+yet`)
	c := mustGet(pawl.Open(t.Context(), fileURL(b.file("state/pawl/locks.db")), nil))(t)
	t.Cleanup(func() { _ = closeSoon(c) })
	mustGet(c.Mutex("first").Lock(t.Context()))(t)
	s.awaitScreen(`(?m)^>first `)
	s.key("b")
	s.awaitScreen(`pawl top breaks leases only with --allow-break`)
	s.key("q")
	s.awaitScreen(`code 0\n`)
	s.line(fmt.Sprintf("pawl --url %s top; echo code $?", "sqlite:/no/such/locks.db"))
	s.awaitScreen(`pawl: .*\n(?s:.*)code 69\n`)
	s.awaitRestored()
}
