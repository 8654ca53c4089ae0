package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/internal/skip"
)

// startCommandOfAnotherUser starts a pawl whose command changes its user, as sudo does.
// Root may signal any user's processes, so pawl runs without CAP_KILL.
func (b *lab) startCommandOfAnotherUser(args ...string) *process {
	b.t.Helper()
	if os.Getuid() != 0 {
		skip.Unproven(b.t, "a command of another user needs the rights of root")
	}
	noError(b.t, os.Chmod(b.dir, 0o777)) //nolint:gosec // the other user writes there
	args = append([]string{"--bounding-set", "-kill", "--inh-caps", "-kill", "pawl", "run"}, args...)
	return b.startAs("setpriv", append(args, "x", "--", "setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c",
		`echo $$ > group; trap "echo signaled > signaled" TERM; echo ready > ready; while ! test -e go; do sleep 0.01; done`)...)
}

func TestAnUndeliveredSignalIsReportedOnce(t *testing.T) {
	b := newLab(t)
	p := b.startCommandOfAnotherUser()
	b.awaitFile("ready")
	b.signal(p, syscall.SIGTERM)
	eventually(t, "it warns", func() bool { return strings.Contains(p.stderr.String(), "SIGTERM did not reach the command") })
	b.signal(p, syscall.SIGHUP)
	b.awaitHeld("x")
	b.write("go", "")
	p.wantCode(0) // the command ends because of the file
	if got := p.stderr.String(); strings.Count(got, "pawl: ") != 1 || b.read("signaled") != "" {
		t.Errorf("pawl printed %q, and the command received %q", got, b.read("signaled"))
	}
}

// After a loss pawl cannot stop the command, and reports that.
func TestAnUnstoppableCommandIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		code   int
		breaks bool
	}{
		"Lost":    {[]string{"--grace", "0.1"}, exitLost, true},
		"MaxHold": {[]string{"--grace", "0.1", "--max-hold", "1"}, exitTooLong, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			p := b.startCommandOfAnotherUser(c.args...)
			b.awaitFile("ready")
			group := b.group()
			t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
			if c.breaks {
				b.start("break", "--yes", "--delay", "0", "x").wantCode(0)
			}
			p.wantCode(c.code)
			got := p.stderr.String()
			if strings.Count(got, "did not reach the command: operation not permitted") != 1 || !strings.Contains(got, "a process of the command is still running") {
				t.Errorf("it printed %q", got)
			}
		})
	}
}
