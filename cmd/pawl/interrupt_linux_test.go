package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl"
)

// One signal ends a command that only reads the database, even if no process reads its
// output: a pipe of the smallest size is full. Pawl dies of that signal.
func TestOneSignalEndsACommandThatOnlyReads(t *testing.T) {
	shared := newLab(t)
	for range 150 {
		mustGet(shared.c.RWMutex("x", pawl.WithTTL(time.Hour)).RLock(t.Context()))(t)
	}
	for _, args := range []string{"ls", "ls --json", "show x", "show --json x", "watch x", "watch --json x"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(args+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				b := *shared
				b.t = t
				r, w, err := os.Pipe()
				noError(t, err)
				defer r.Close()
				mustGet(unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096))(t)
				p := b.startWith(func(cmd *exec.Cmd) { cmd.Stdout = w }, "pawl", strings.Fields(args)...)
				_ = w.Close()
				eventually(t, "it has begun to print", func() bool {
					n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
					return err == nil && n > 0
				})
				b.signal(p, sig)
				p.wantKilledBy(sig)
			})
		}
	}
}

// Ctrl-C also ends a script that runs watch. The script does not run its next line.
func TestTerminalCtrlCEndsAScriptThatWatches(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("only bash checks which signal pawl dies of: %v", err)
	}
	b := newLab(t)
	b.write("script", "pawl watch x\necho went on\n")
	s := b.shell()
	s.line("bash script")
	s.await("never locked here")
	s.key("\x03")
	s.await(`\$ $`)
	s.line("echo code $?")
	if got := s.await(`(?s).*code \d+\r\n`); strings.Contains(got, "went on") || !strings.Contains(got, "code 130") {
		t.Errorf("the terminal shows %q", got)
	}
}

func (p *process) wantKilledBy(s syscall.Signal) {
	p.b.t.Helper()
	p.code()
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != s {
		p.b.t.Errorf("it ended with %v, not by %v; it printed %s", p.ProcessState, s, p.stderr.String())
	}
}
