//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// On Linux the kernel kills the command when the thread that started it ends. Renewals
// start and end threads of pawl, but not that one.
func TestTheLockIsRenewedWhileTheCommandRuns(t *testing.T) {
	skipIfShort(t, "a machine that stands still for two seconds loses the lock")
	b := newLab(t)
	p := b.start("run", "--ttl", "2", "--grace", "0.1", "x", "--", "sleep", "3")
	fence := b.awaitHeld("x").Fence
	p.wantCode(0)
	if e := b.entry("x"); e.Fence != fence || len(e.Holders) > 0 {
		t.Errorf("it ended with %+v; the first fence was %d", e, fence)
	}
}

func TestAWaiterThatASignalEndsLeavesTheQueue(t *testing.T) {
	b := newLab(t)
	holder := b.start("run", "x", "--", "sleep", "1000")
	b.awaitHeld("x")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		p := b.start("run", "x", "--", "touch", "ran")
		b.awaitWaiters("x", 1)
		b.signal(p, s)
		p.wantCode(128 + int(s))
		if n := len(b.entry("x").Waiters); n != 0 {
			t.Errorf("after %v, %d claims wait, want none", s, n)
		}
	}
	b.signal(holder, syscall.SIGTERM)
	holder.wantCode(128 + int(syscall.SIGTERM))
	if e := b.entry("x"); len(e.Holders) != 0 {
		t.Errorf("after the end of the holder, x is held by %v", e.Holders)
	}
	if _, err := os.Stat(b.file("ran")); err == nil {
		t.Error("a command ran without the lock")
	}
}

// The sender signals only pawl, like kill(1) and systemd with KillMode=mixed, or pawl's
// group, like a shell and timeout(1).
func TestASignalReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(pid int, s syscall.Signal) error{
		"ToPawl":     syscall.Kill,
		"ToItsGroup": func(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			p := b.startAs("setsid", "pawl", "run", "x", "--", "sh", "-c", `
				for s in INT TERM HUP QUIT USR2; do trap "echo $s >> heard" $s; done
				trap "echo USR1 >> heard; exit 3" USR1
				echo ready > ready
				while :; do sleep 0.01; done`)
			b.awaitFile("ready")
			heard := ""
			for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2, syscall.SIGUSR1} {
				noError(t, send(p.Process.Pid, s))
				heard = strings.TrimSpace(heard + "\n" + strings.TrimPrefix(unix.SignalName(s), "SIG"))
				eventually(t, "heard "+s.String(), func() bool { return len(b.read("heard")) >= len(heard) })
			}
			p.wantCode(3)
			if got := b.read("heard"); got != heard {
				t.Errorf("it received %q", got)
			}
		})
	}
}

// A signal that comes between the grant and the start of the command must not be lost.
func TestASignalBeforeTheStartPreventsTheStart(t *testing.T) {
	t.Parallel()
	client := mustGet(pawl.New(memlock.New(nil), nil))(t)
	lock := client.Mutex("x")
	lease := mustGet(lock.Lock(t.Context()))(t)
	dir := t.TempDir()
	j := &job{v: &output{err: os.Stderr}, name: "x", path: "/usr/bin/touch", argv: []string{"touch", dir + "/ran"}, signals: make(chan os.Signal, 1)}

	j.signals <- syscall.SIGTERM
	if err := j.hold(lease); !codeIs(err, 128+15) {
		t.Errorf("hold returned %v, want 143", err)
	}

	// A signal that arrives with the grant is not lost, either.
	j.open = func(context.Context) (*pawl.Client, error) { return client, nil }
	j.acquire = func(context.Context, *pawl.Client) (jobLease, error) {
		j.signals <- syscall.SIGTERM
		for len(j.signals) > 0 { // until it is taken
			time.Sleep(time.Millisecond)
		}
		return lease, nil
	}
	if err := j.run(); !codeIs(err, 128+15) {
		t.Errorf("run returned %v, want 143", err)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("the command ran")
	}
	if !errors.Is(lease.Err(), pawl.ErrReleased) {
		t.Errorf("the lease is not released: %v", lease.Err())
	}
}

// The shell dies of the signal at once. Its children tidy up while pawl keeps the lock.
func TestAfterASignalTheRestOfTheGroupEndsUnderTheLock(t *testing.T) {
	b := newLab(t)
	p := b.start("run", "--ttl", "150", "--grace", "60", "x", "--", "sh", "-c", `
		sh -c 'trap "echo tidying > tidying; while ! test -e go; do sleep 0.01; done; echo tidy > tidy; exit" TERM
			echo ready > ready; while :; do sleep 0.01; done'
		true`)
	b.awaitFile("ready")
	next := b.start("run", "x", "--", "sh", "-c", "test -e tidy && echo after > next || echo before > next")
	b.awaitWaiters("x", 1)
	b.signal(p, syscall.SIGTERM)
	b.awaitFile("tidying")
	if got := b.read("next"); got != "" {
		t.Error("the next command started while the first tidied up")
	}
	b.write("go", "0\n")
	p.wantCode(128 + 15)
	next.wantCode(0)
	if got := b.read("next"); got != "after" {
		t.Errorf("the next command started %s the first had ended", got)
	}
}

// The first process of the group is killed, or exits after SIGTERM. Pawl ends the others.
func TestTheRestOfTheGroupEndsAfterItsLeader(t *testing.T) {
	const rest = `; echo ready > ready; while :; do sleep 0.01; done) >/dev/null 2>&1 & while :; do sleep 0.01; done`
	for name, c := range map[string]struct {
		grace, child string
		end          func(b *lab, p *process)
		code         int
	}{
		"Killed": {"60", `echo $$ > group; (trap "echo tidy > tidy; exit" TERM` + rest, func(b *lab, _ *process) {
			if err := syscall.Kill(b.group(), syscall.SIGKILL); err != nil {
				b.t.Error(err)
			}
		}, 128 + 9},
		"Ended": {"0.1", `echo $$ > group; trap "echo tidy > tidy; exit 7" TERM; (trap "" TERM` + rest, func(b *lab, p *process) {
			b.signal(p, syscall.SIGTERM)
		}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			p := b.start("run", "--ttl", "150", "--grace", c.grace, "x", "--", "sh", "-c", c.child)
			b.awaitFile("ready")
			group := b.group()
			c.end(b, p)
			p.wantCode(c.code)
			b.wantGone(group)
			if b.read("tidy") == "" {
				t.Error("it had no time to tidy up")
			}
		})
	}
}

func TestBackgroundJobsOutliveACommandThatEndsByItself(t *testing.T) {
	b := newLab(t)
	p, code := b.run("run", "x", "--", "sh", "-c", `(while ! test -e go; do sleep 0.01; done; echo done > done) >/dev/null 2>&1 & exit 3`)
	if code != 3 {
		t.Errorf("exit code %d, want 3; it printed %s", code, p.stderr.String())
	}
	if e := b.entry("x"); len(e.Holders) != 0 {
		t.Errorf("it is still held by %v", e.Holders)
	}
	b.write("go", "0\n")
	b.awaitFile("done")
}

// Under nohup, or in the background of a shell without job control, an ignored signal
// stays ignored.
func TestAnIgnoredSignalStaysIgnored(t *testing.T) {
	b := newLab(t)
	p := b.startAs("sh", "-c", `trap "" HUP; exec pawl run x -- sh -c "echo ready > ready; while ! test -e go; do sleep 0.01; done"`)
	b.awaitFile("ready")
	b.signal(p, syscall.SIGHUP)
	b.write("go", "")
	p.wantCode(0)
}
