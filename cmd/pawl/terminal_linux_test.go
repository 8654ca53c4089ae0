package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A shell runs on a terminal of its own, on which the test types.
type shell struct {
	b      *lab
	master *os.File
	readMu sync.Mutex // held during each read of the terminal's output; a test that holds it makes the terminal hang
	mu     sync.Mutex
	screen *emulator    // has the text that a person sees
	shown  bytes.Buffer // the whole output
	seen   int          // the number of bytes of shown that await has consumed
	pid    int

	linesRun int // the number of lines that runLine has typed
}

func (b *lab) shell() *shell {
	b.t.Helper()
	s := b.startShell("sh", "-i")
	s.await(`\$ $`)
	return s
}

// startShell starts a shell with this command line, and does not wait for its prompt.
func (b *lab) startShell(command ...string) *shell {
	b.t.Helper()
	master, slave := openPTY(b.t)
	s := &shell{b: b, master: master, screen: newEmulator(80, 24)}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "PAWL_URL="+b.url, "HOME="+b.dir, "PS1=$ ", "ENV=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	noError(b.t, cmd.Start())
	_ = slave.Close()
	s.pid = cmd.Process.Pid
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			s.readMu.Lock()
			n, err := master.Read(buf)
			s.readMu.Unlock()
			_, _ = s.screen.Write(buf[:n])
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // the terminal hangs up, and its processes end
		_ = cmd.Wait()
		_ = master.Close()
		<-done
	})
	return s
}

func (s *shell) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// openPTY makes a pseudo-terminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd := mustGet(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0))(t)
	n := mustGet(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	noError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	slave = mustGet(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	return os.NewFile(uintptr(fd), "pty"), slave
}

func (s *shell) key(text string) {
	s.b.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.b.t.Fatal(err)
	}
}

func (s *shell) line(text string) { s.b.t.Helper(); s.key(text + "\n") }

// await waits for the pattern in the output after the last match, and returns the match.
func (s *shell) await(pattern string) string {
	s.b.t.Helper()
	re := regexp.MustCompile(pattern)
	var found string
	if err := poll(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := re.FindIndex(s.shown.Bytes()[s.seen:])
		if at == nil {
			return false
		}
		found = string(s.shown.Bytes()[s.seen+at[0] : s.seen+at[1]])
		s.seen += at[1]
		return true
	}); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.b.t.Fatalf("%v for %q; the terminal shows\n%s", err, pattern, s.shown.String())
	}
	return found
}

// awaitForeground waits until the group in the foreground satisfies f.
func (s *shell) awaitForeground(what string, f func(group int) bool) {
	s.b.t.Helper()
	group := 0
	if err := poll(func() bool {
		raw, err := s.master.SyscallConn()
		if err != nil {
			s.b.t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
		return err == nil && f(group)
	}); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.b.t.Fatalf("%s: %v; the foreground is the group %d; the terminal shows\n%s", what, err, group, s.shown.String())
	}
}

// state returns the state of a process: R, S, T (stopped), Z, ...
func state(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[0]
}

// The command reads from the terminal. Ctrl-Z brings back the shell's prompt, fg
// continues the command, and Ctrl-C ends it.
func TestTerminalKeysReachTheCommand(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line(`pawl run x -- sh -c 'echo $$ > group; exec cat'`)
	group := b.group()
	s.awaitForeground("the command is in the foreground", func(g int) bool { return g == group })
	s.line("one")
	s.await("one\r\none\r\n")

	holder := b.awaitHeld("x").Owner.PID
	s.key("\x1a")
	s.await(`(?i)stopped`)
	s.await(`\$ $`)
	s.awaitForeground("the shell has its terminal back", func(g int) bool { return g == s.pid })
	if state(group) != "T" || state(holder) != "T" {
		t.Errorf("Ctrl-Z: the command is %s, pawl is %s", state(group), state(holder))
	}
	s.line("echo between")
	s.await("\nbetween\r\n")

	s.line("fg")
	s.awaitForeground("the command is in the foreground again", func(g int) bool { return g == group })
	s.line("two")
	s.await("two\r\ntwo\r\n")

	s.key("\x03")
	s.await(`\$ $`)
	s.awaitForeground("the shell has its terminal back", func(g int) bool { return g == s.pid })
	s.line(`echo code $?`)
	s.await("\ncode 130\r\n")
	if n := len(b.entry("x").Holders); n != 0 {
		t.Errorf("x has %d holders", n)
	}
}

// A pawl that Ctrl-Z has stopped does not renew. After fg it checks the lease before the
// command goes on.
func TestTerminalFgChecksTheLease(t *testing.T) {
	skipIfShort(t, "a machine that stands still for a second loses the lock")
	b := newLab(t)
	noError(t, unix.Mkfifo(b.file("work"), 0o600))
	work, err := os.OpenFile(b.file("work"), os.O_RDWR, 0)
	noError(t, err)
	t.Cleanup(func() { _ = work.Close() })
	s := b.shell()
	// The command starts no processes: a shell that waits for a vfork cannot be stopped.
	s.line(`pawl run --ttl 1 --grace 0 x -- sh -c 'trap "" TERM; echo $$ > group; while read l; do echo $l >> done; done < work'`)
	group := b.group()
	s.awaitForeground("the command is in the foreground", func(g int) bool { return g == group })
	mustGet(work.WriteString("early\n"))(t)
	b.awaitFile("done")
	s.key("\x1a")
	s.await(`(?i)stopped`)
	mustGet(work.WriteString("late\n"))(t)
	eventually(t, "x is free", func() bool { return len(b.entry("x").Holders) == 0 })
	s.line("fg")
	s.await(`pawl: lost "x" \(fence \d+\): \w+`)
	s.await(`\$ $`)
	s.line("echo code $?")
	s.await("\ncode 76\r\n")
	b.wantGone(group)
	if got := b.read("done"); got != "early" {
		t.Errorf("the command worked without the lock: it did %q, want early only", got)
	}
}

// A command in the background stops when it reads from the terminal. fg gives it the
// terminal.
func TestTerminalGoesToABackgroundCommandAfterFg(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line(`pawl run x -- sh -c 'echo $$ > group; read line; echo got $line' &`)
	group := b.group()
	eventually(t, "it stops without the terminal", func() bool { return state(group) == "T" && state(b.awaitHeld("x").Owner.PID) == "T" })
	s.awaitForeground("the shell keeps its terminal", func(g int) bool { return g == s.pid })
	s.line("fg")
	s.awaitForeground("the command is in the foreground", func(g int) bool { return g == group })
	s.line("this")
	s.await("\ngot this\r\n")
	s.await(`\$ $`)
	s.line("echo code $?")
	s.await("\ncode 0\r\n")
}

// In a pipe, the other processes have the terminal until the command needs it. Ctrl-C
// still reaches the command.
func TestTerminalGoesToACommandInAPipeWhenItReads(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line(`pawl run x -- sh -c 'echo $$ > group; read line; echo got $line; exec sleep 1000' | cat`)
	group := b.group()
	s.awaitForeground("the command gets the foreground when it reads", func(g int) bool { return g == group })
	s.line("this")
	s.await("\ngot this\r\n")
	// Press Ctrl-C only now: between two commands, a shell may ignore it.
	eventually(t, "it sleeps", func() bool {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", group))
		return string(comm) == "sleep\n"
	})
	s.key("\x03")
	s.await(`\$ $`)
	b.wantGone(group)

	noError(t, os.Remove(b.file("group")))
	s.line(`pawl run x -- sh -c 'echo $$ > group; exec sleep 1000' | cat`)
	group = b.group()
	s.awaitForeground("the pipe is in the foreground", func(g int) bool { return g != s.pid && g != group })
	s.key("\x1a") // reaches pawl, and the command through it
	s.await(`(?i)stopped`)
	if state(group) != "T" {
		t.Errorf("Ctrl-Z: the command is %s", state(group))
	}
	s.line("fg")
	eventually(t, "it goes on", func() bool { return state(group) == "S" })
	s.key("\x03")
	s.await(`\$ $`)
	eventually(t, "it is gone", func() bool { return state(group) == "" })
}

// Ctrl-C also ends a script, which does not go on with its next line.
func TestTerminalCtrlCEndsAScript(t *testing.T) {
	for _, interpreter := range []string{"sh", "bash"} {
		if _, err := exec.LookPath(interpreter); err != nil {
			continue // bash may be missing; unlike sh, it goes on unless the signal kills pawl
		}
		t.Run(interpreter, func(t *testing.T) {
			b := newLab(t)
			b.write("script", "pawl run x -- sh -c 'echo $$ > group; exec cat'\necho went on\n")
			s := b.shell()
			s.line(interpreter + " script")
			group := b.group()
			s.awaitForeground("the command is in the foreground", func(g int) bool { return g == group })
			s.line("cat has started")
			s.await("started\r\ncat has started\r\n")
			s.key("\x03")
			s.await(`\$ $`)
			s.line("echo code $?")
			if got := s.await(`(?s).*code \d+\r\n`); strings.Contains(got, "went on") || !strings.Contains(got, "code 130") {
				t.Errorf("the terminal shows %q", got)
			}
			if n := len(b.entry("x").Holders); n != 0 {
				t.Errorf("x has %d holders", n)
			}
		})
	}
}

// A killed command cannot restore the terminal's modes.
func TestTerminalModesAreRestored(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line(`pawl run x -- sh -c 'stty raw -echo; kill -9 $$'; echo code $?; stty -a`)
	s.await("code 137")
	s.await(` icanon`)
	s.await(` echo `)
}

// Ctrl-Z stops pawl and the script that runs it. Otherwise the shell would wait for ever.
func TestTerminalCtrlZStopsAScript(t *testing.T) {
	b := newLab(t)
	b.write("script", "pawl run x -- sh -c 'echo $$ > group; exec cat'\necho end of script\n")
	s := b.shell()
	s.line("sh script")
	group := b.group()
	s.awaitForeground("the command is in the foreground", func(g int) bool { return g == group })
	s.key("\x1a")
	s.await(`(?i)stopped`)
	s.line("fg")
	s.awaitForeground("the command is in the foreground again", func(g int) bool { return g == group })
	s.key("\x04")
	s.await("\nend of script\r\n")
}

// break asks only on a terminal.
func TestTerminalBreakAsks(t *testing.T) {
	b := newLab(t)
	p := b.start("run", "x", "--", "sleep", "1000")
	fence := b.awaitHeld("x").Fence
	s := b.shell()
	s.line("pawl break --delay 0 x; echo code $?")
	s.await(`pawl: type the fence of the lease to break: `)
	s.line("no")
	s.await("not a fence; nothing was broken")
	s.await("\ncode 64\r\n")
	s.line("pawl break --delay 0 x")
	s.await(`pawl: type the fence of the lease to break: `)
	s.key("\x03")
	s.await(`\$ $`)
	s.line("echo code $?")
	s.await("\ncode 130\r\n")
	s.line("pawl break --delay 0 x; echo code $?")
	s.await(`pawl: type the fence of the lease to break: `)
	s.line(fmt.Sprint(fence))
	s.await(`broke x, held by `)
	s.await("\ncode 0\r\n")
	p.wantCode(exitLost)
}

// The default file excludes no other hosts. Pawl says so once, and only on a terminal.
func TestTerminalShowsTheReachOfTheDefaultFile(t *testing.T) {
	const reach = "pawl: the default file excludes processes of this user on this host only; for other users or hosts set --url or PAWL_URL\r\n"
	s := newLab(t).shell()
	s.line("unset PAWL_URL; pawl run x -- pawl run y -- echo 'r'an; echo code $?")
	if got := s.await(`(?s)\n.*ran\r\ncode 0\r\n`); strings.Count(got, reach) != 1 {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("pawl run -q x -- true; pawl run x -- true 2> said; cat said; pawl run --url sqlite:x.db x -- true; echo code $?")
	if got := s.await(`(?s)\n.*code 0\r\n`); strings.Contains(got, "default file") {
		t.Errorf("the terminal shows %q", got)
	}
}

// All users that can list processes see a password in --url.
func TestTerminalShowsAWarningOfAPasswordInAFlag(t *testing.T) {
	s := newLab(t).shell()
	s.line("pawl --url redis://me:se''cret@127.0.0.1:1 ls; echo code $?")
	if got := s.await(`(?s)\n.*code 69`); !strings.Contains(got, "pawl: warning: everyone who can list processes on this host sees the password in --url; PAWL_URL hides it") || strings.Contains(got, "secret") {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("PAWL_URL=redis://me:secret@127.0.0.1:1 pawl ls; pawl --url redis://me@127.0.0.1:1 ls; echo code $?")
	if got := s.await(`(?s)\n.*code 69`); strings.Contains(got, "warning") {
		t.Errorf("the terminal shows %q", got)
	}
}
