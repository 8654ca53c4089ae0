package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// These tests do step by step what systemd does to stop a service, by systemd.kill(5).
// They start no systemd.

// A unit is a pawl and all processes that it has started, wherever they are in the
// process table. It finds them by their environment, as systemd finds them by their
// control group.
type unit struct{ *process }

func (b *lab) startUnit(command string) unit {
	return unit{b.startAs("setsid", "pawl", "run", "--ttl", "1000", "x", "--", "sh", "-c", command)}
}

func (u unit) processes() (pids []int) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		u.b.t.Fatal(err)
	}
	for _, file := range files {
		env, _ := os.ReadFile(file) // empty if it has ended
		if slices.Contains(strings.Split(string(env), "\x00"), "PAWL_URL="+u.b.url) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// terminate is the first step of a stop. SIGCONT always follows it.
func (u unit) terminate(pids ...int) {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGTERM) // it may have ended
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// kill is the last step, with every useful KillMode.
func (u unit) kill() {
	for _, pid := range u.processes() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	eventually(u.b.t, "nothing is left", func() bool { return len(u.processes()) == 0 })
}

// With KillMode=mixed the first SIGTERM is for the main process. When that has exited,
// the rest gets SIGKILL.
func TestKillModeMixedStopsTheCommandByOneSIGTERM(t *testing.T) {
	b := newLab(t)
	u := b.startUnit(`
		trap "echo TERM >> heard" TERM
		setsid sh -c 'echo ready > ready; exec sleep 1000' &
		while ! test -e go; do sleep 0.01; done
		exit 3`)
	b.awaitFile("ready")
	u.terminate(u.Process.Pid)
	b.awaitFile("heard")
	b.awaitHeld("x") // while the command tidies up
	b.write("go", "")
	u.wantCode(3)
	if got := b.read("heard"); got != "TERM" {
		t.Errorf("the command heard %q", got)
	}
	if n := len(b.entry("x").Holders); n != 0 {
		t.Errorf("%d hold it", n)
	}
	if len(u.processes()) == 0 {
		t.Error("nothing has left the group: there is nothing to kill")
	}
	u.kill()
}

// A command that does not end gets SIGKILL after TimeoutStopSec, and so does pawl, which
// then cannot release the lock.
func TestKillModeMixedKillsACommandThatDoesNotEnd(t *testing.T) {
	b := newLab(t)
	u := b.startUnit(children["IgnoresTERM"])
	b.awaitFile("ready")
	u.terminate(u.Process.Pid)
	u.kill()
	u.wantCode(-1) // by a signal
	group := b.group()
	eventually(t, "the group is gone", func() bool { return syscall.Kill(-group, 0) != nil || allDead(group) })
	b.awaitHeld("x") // until its TTL is over
}

// With KillMode=control-group, the default, every process gets SIGTERM, and pawl passes
// on its own.
func TestKillModeControlGroupTellsTheCommandTwice(t *testing.T) {
	b := newLab(t)
	u := b.startUnit(`
		trap "echo TERM >> heard" TERM
		echo ready > ready
		while ! test -e go; do sleep 0.01; done`)
	b.awaitFile("ready")
	u.terminate(u.Process.Pid)
	b.awaitFile("heard")
	for _, pid := range u.processes() {
		if pid != u.Process.Pid {
			u.terminate(pid)
		}
	}
	eventually(t, "it hears it again", func() bool { return b.read("heard") == "TERM\nTERM" })
	b.write("go", "")
	u.wantCode(0)
}
