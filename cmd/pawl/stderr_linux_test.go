package main

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/internal/skip"
)

// blockedStderr gives commands a standard error that no process reads, and that is full.
var blockedStderr = map[string]func(t *testing.T) func(*exec.Cmd){
	"Pipe": func(t *testing.T) func(*exec.Cmd) {
		w := fullPipe(t)
		return func(cmd *exec.Cmd) { cmd.Stderr = w }
	},
	"Terminal": func(t *testing.T) func(*exec.Cmd) {
		master, slave := openPTY(t)
		t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
		if _, err := master.WriteString("\x13"); err != nil { // Ctrl-S
			t.Fatal(err)
		}
		wantFull(t, int(slave.Fd()))
		return func(cmd *exec.Cmd) {
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		}
	},
}

// fullPipe returns a pipe that is full and never read.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	noError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	fd := int(w.Fd())
	must(unix.SetNonblock(fd, true))
	for err = nil; err == nil; {
		_, err = unix.Write(fd, make([]byte, 4096))
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	must(unix.SetNonblock(fd, false))
	wantFull(t, fd)
	return w
}

// wantFull requires that a write to this file would block.
func wantFull(t *testing.T, fd int) {
	t.Helper()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0); n != 0 || err != nil {
		t.Fatalf("a write would not block: poll returns %d, %v", n, err)
	}
}

// endsOnTERM is a command that ends with code 0 after SIGTERM. It hides the message that
// a signal has ended the sleep.
const endsOnTERM = `exec 2>/dev/null; trap "echo ended > ended; exit 0" TERM; echo ready > ready; sleep 1000 & wait`

// Pawl stops its command, passes signals on and ends, although no process reads its
// messages.
func TestUnreadMessagesBlockNothing(t *testing.T) {
	t.Parallel()
	breakLease := func(delay string) func(*lab, *process) {
		return func(b *lab, p *process) {
			p.await("ready")
			if r, code := b.run("break", "--yes", "--delay", delay, "x"); code != 0 {
				b.t.Fatalf("break: %d, %s", code, r.stderr.String())
			}
		}
	}
	requestEnd := func(b *lab, p *process) {
		p.await("ready")
		b.signal(p, syscall.SIGTERM)
	}
	endWhileWaiting := func(b *lab, p *process) {
		b.awaitWaiters("x", 1)
		b.signal(p, syscall.SIGTERM)
	}
	endAfterWaiting := func(b *lab, p *process) {
		b.awaitWaiters("x", 1)
		b.write("go", "")
		requestEnd(b, p)
	}
	const firstTermEndsOnTERM = "test -e ended || { " + endsOnTERM + "; }" // the second term ends at once
	for name, c := range map[string]struct {
		args        string // of pawl, up to the command
		line        string // of the command; default endsOnTERM
		held        bool   // by another client, until there is a file "go"
		do          func(b *lab, p *process)
		code        int
		endsCommand bool // the command received SIGTERM
	}{
		"Lost":            {args: "pawl run x", do: breakLease("1000"), code: exitLost, endsCommand: true},
		"OnceLost":        {args: "pawl once x k1", do: breakLease("1000"), code: exitLost, endsCommand: true},
		"LeadLost":        {args: "pawl elect x", line: firstTermEndsOnTERM, do: breakLease("1"), endsCommand: true},
		"MaxHold":         {args: "pawl run --max-hold 1 x", code: exitTooLong, endsCommand: true},
		"OnceMaxHold":     {args: "pawl once --max-hold 1 x k1", code: exitTooLong, endsCommand: true},
		"Health":          {args: "pawl run --ttl 6 --health false x", code: exitLost, endsCommand: true},
		"OnceHealth":      {args: "pawl once --ttl 6 --health false x k1", code: exitLost, endsCommand: true},
		"ElectHealth":     {args: "pawl elect --ttl 6 --health false x", line: firstTermEndsOnTERM, endsCommand: true},
		"Waiting":         {args: "pawl run -v x", held: true, do: endAfterWaiting, endsCommand: true},
		"OnceWaiting":     {args: "pawl once -v x k1", held: true, do: endAfterWaiting, endsCommand: true},
		"ElectWaiting":    {args: "pawl elect -v x", held: true, do: endAfterWaiting, endsCommand: true},
		"WarningOfMemory": {args: "pawl --url mem: run x", do: requestEnd, endsCommand: true},
		"DefaultFile":     {args: "env -u PAWL_URL pawl run x", do: requestEnd, endsCommand: true},
		"Deadlock":        {args: "pawl run x", line: "exec pawl run x true", do: endWhileWaiting, code: 128 + 15},
		"NotReleased":     {args: "pawl run x", line: "for f in locks.db*; do echo junk > $f; done; exit 7", code: 7},
		"NotStarted":      {args: "pawl run x no-such-command", code: exitNotFound},
		"NotAcquired":     {args: "pawl run -n x", held: true, code: exitHeld},
	} {
		for where, prepare := range blockedStderr {
			t.Run(name+where, func(t *testing.T) {
				b := newLab(t)
				if c.held {
					b.start("run", "x", "--", "sh", "-c", "while ! test -e go; do sleep 0.01; done")
					b.awaitHeld("x")
				}
				args := append(strings.Fields(c.args), "--", "sh", "-c", cmp.Or(c.line, endsOnTERM))
				p := b.startWith(prepare(t), args[0], args[1:]...)
				if c.do != nil {
					c.do(b, p)
				}
				p.wantCode(c.code)
				if strings.Contains(c.args, "--max-hold") && b.read("ready") == "" {
					skip.Unproven(t, "the command was not ready when --max-hold was over")
				}
				if ended := b.read("ended") != ""; ended != c.endsCommand {
					t.Errorf("the command received SIGTERM: %v, want %v", ended, c.endsCommand)
				}
			})
		}
	}
}

// A signal ends pawl acquire although no process reads its handle. It releases the lease,
// because no other process could.
func TestTheLeaseOfAnUnreadHandleIsReleased(t *testing.T) {
	b := newLab(t)
	w := fullPipe(t)
	p := b.startWith(func(cmd *exec.Cmd) { cmd.Stdout = w }, "pawl", "acquire", "x")
	b.awaitHeld("x")
	b.signal(p, syscall.SIGTERM)
	p.wantCode(128 + 15)
	if e := b.entry("x"); len(e.Holders) > 0 {
		t.Errorf("the name stays held: %+v", e.Holders)
	}
}

// A command that prints an error ends even if no process reads the error.
func TestNoErrorWaitsForAReader(t *testing.T) {
	b := newLab(t)
	w := fullPipe(t)
	for args, want := range map[string]int{
		"pawl run --bogus":                       exitUsage,
		"pawl release":                           exitUsage,
		"pawl break --yes x":                     exitHeld,
		"pawl --url redis://127.0.0.1:1 ls":      exitUnavailable,
		"pawl acquire -n --handle /dev/null/x x": exitUsage,
	} {
		words := strings.Fields(args)
		b.startWith(func(cmd *exec.Cmd) { cmd.Stderr = w }, words[0], words[1:]...).wantCode(want)
	}
}
