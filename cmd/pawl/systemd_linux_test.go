package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What systemd does to stop a service, step by step as systemd.kill(5) has it, done here
// by hand: the tests start no systemd.

// A unit is a pawl and all that it has started, wherever in the process table that went.
// It is known by its environment, as systemd knows it by its control group.
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
		env, _ := os.ReadFile(file) // empty of one that has gone
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
		_ = unix.Kill(pid, unix.SIGTERM) // it may have gone
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// kill is the last step, with every KillMode that is worth setting.
func (u unit) kill() {
	for _, pid := range u.processes() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	eventually(u.b.t, "nothing is left", func() bool { return len(u.processes()) == 0 })
}

// With KillMode=mixed the first SIGTERM is for the main process, and when that has exited
// what is left gets SIGKILL.
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

// A command that does not end gets SIGKILL after TimeoutStopSec, and pawl with it, which
// cannot release the lock then.
func TestKillModeMixedKillsACommandThatDoesNotEnd(t *testing.T) {
	b := newLab(t)
	u := b.startUnit(children["IgnoresTERM"])
	b.awaitFile("ready")
	u.terminate(u.Process.Pid)
	u.kill()
	u.wantCode(-1) // by a signal
	b.wantGone(b.group())
	b.awaitHeld("x") // until its TTL is over
}

// With KillMode=control-group, the default, SIGTERM is for every process, and pawl passes
// its own on.
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
