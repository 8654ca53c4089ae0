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

// unread prepares commands whose standard error takes nothing, and is never read.
var unread = map[string]func(t *testing.T) func(*exec.Cmd){
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

// fullPipe is a pipe that takes nothing, and is never read.
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
		t.Fatalf("it takes more: %d, %v", n, err)
	}
}

// works is a command that ends with code 0 when it is asked to. A shell would print that
// a signal has ended the sleep.
const works = `exec 2>/dev/null; trap "echo told > told; exit 0" TERM; echo ready > ready; while :; do sleep 0.01; done`

// Pawl stops its command, passes signals on and ends, although no process reads its
// messages.
func TestNoLineOfTextHoldsAnythingUp(t *testing.T) {
	t.Parallel()
	breaks := func(delay string) func(b *lab, _ *process) {
		return func(b *lab, _ *process) {
			b.awaitFile("ready")
			if r, code := b.run("break", "--yes", "--delay", delay, "x"); code != 0 {
				b.t.Fatalf("break: %d, %s", code, r.stderr.String())
			}
		}
	}
	requestEnd := func(b *lab, p *process) {
		b.awaitFile("ready")
		b.signal(p, syscall.SIGTERM)
	}
	toldWhileWaiting := func(b *lab, p *process) {
		b.awaitWaiters("x", 1)
		b.signal(p, syscall.SIGTERM)
	}
	afterAWait := func(b *lab, p *process) {
		b.awaitWaiters("x", 1)
		b.write("go", "")
		requestEnd(b, p)
	}
	const again = "test -e told || { " + works + "; }" // of a leader that leads for the second time
	for name, c := range map[string]struct {
		args string // of pawl, up to the command
		line string // of the command; default works
		held bool   // by another client, until there is a file "go"
		do   func(b *lab, p *process)
		code int
		told bool // the command was asked to end
	}{
		"Lost":            {args: "pawl run x", do: breaks("1000"), code: exitLost, told: true},
		"OnceLost":        {args: "pawl once x k1", do: breaks("1000"), code: exitLost, told: true},
		"LeadLost":        {args: "pawl elect x", line: again, do: breaks("1"), told: true},
		"MaxHold":         {args: "pawl run --max-hold 1 x", code: exitTooLong, told: true},
		"OnceMaxHold":     {args: "pawl once --max-hold 1 x k1", code: exitTooLong, told: true},
		"Health":          {args: "pawl run --ttl 6 --health false x", code: exitLost, told: true},
		"OnceHealth":      {args: "pawl once --ttl 6 --health false x k1", code: exitLost, told: true},
		"ElectHealth":     {args: "pawl elect --ttl 6 --health false x", line: again, told: true},
		"Waiting":         {args: "pawl run -v x", held: true, do: afterAWait, told: true},
		"OnceWaiting":     {args: "pawl once -v x k1", held: true, do: afterAWait, told: true},
		"ElectWaiting":    {args: "pawl elect -v x", held: true, do: afterAWait, told: true},
		"WarningOfMemory": {args: "pawl --url mem: run x", do: requestEnd, told: true},
		"DefaultFile":     {args: "env -u PAWL_URL pawl run x", do: requestEnd, told: true},
		"Deadlock":        {args: "pawl run x", line: "exec pawl run x true", do: toldWhileWaiting, code: 128 + 15},
		"NotReleased":     {args: "pawl run x", line: "for f in locks.db*; do echo junk > $f; done; exit 7", code: 7},
		"NotStarted":      {args: "pawl run x no-such-command", code: exitNotFound},
		"NotAcquired":     {args: "pawl run -n x", held: true, code: exitHeld},
	} {
		for where, prepare := range unread {
			t.Run(name+where, func(t *testing.T) {
				b := newLab(t)
				if c.held {
					b.start("run", "x", "--", "sh", "-c", "while ! test -e go; do sleep 0.01; done")
					b.awaitHeld("x")
				}
				args := append(strings.Fields(c.args), "--", "sh", "-c", cmp.Or(c.line, works))
				p := b.startWith(prepare(t), args[0], args[1:]...)
				if c.do != nil {
					c.do(b, p)
				}
				p.wantCode(c.code)
				if strings.Contains(c.args, "--max-hold") && b.read("ready") == "" {
					skip.Unproven(t, "the command was not ready when --max-hold was over")
				}
				if told := b.read("told") != ""; told != c.told {
					t.Errorf("the command was asked to end: %v, want %v", told, c.told)
				}
			})
		}
	}
}

// A signal ends pawl acquire although nothing reads its handle, and frees the name: no
// process could release it.
func TestAHandleThatIsNotReadIsTakenBack(t *testing.T) {
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

// An error does not wait for a reader either.
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
