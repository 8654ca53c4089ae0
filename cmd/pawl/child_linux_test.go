package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kill -9 of pawl ends the command at once, long before the lease expires.
func TestKill9OfPawlKillsTheCommand(t *testing.T) {
	b := newLab(t)
	p := b.start("run", "--ttl", "1000", "x", "--", "sh", "-c", `trap "" TERM INT HUP; echo $$ > group; while :; do sleep 0.01; done`)
	pid := b.group()
	noError(t, p.Process.Kill())
	p.code()
	eventually(t, "the command is gone", func() bool { return allDead(pid) })
	if len(b.entry("x").Holders) == 0 {
		t.Error("the lease is gone, too, so the command may have ended with it")
	}
}

// A stopped process receives only SIGKILL and SIGCONT. So pawl, like timeout(1), sends
// SIGCONT after the signal.
func TestEndSignalsReachAStoppedCommand(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(unix.SignalName(s), func(t *testing.T) { testSignalToStopped(t, s) })
	}
}

func testSignalToStopped(t *testing.T, s syscall.Signal) {
	b := newLab(t)
	p := b.start("run", "x", "--", "sh", "-c", `trap "echo tidy > tidy; exit 7" INT TERM HUP QUIT; echo $$ > group; kill -STOP $$; while :; do sleep 0.01; done`)
	eventually(t, "it is stopped", func() bool { return state(b.group()) == "T" })
	b.signal(p, s)
	p.wantCode(7)
	if b.read("tidy") == "" {
		t.Errorf("it had no time to tidy up")
	}
}

// A shell sends SIGCONT only once. It may do so as soon as the other processes of the
// group have stopped, even before pawl has stopped.
func TestASIGCONTBeforeTheStopPreventsTheStop(t *testing.T) {
	newLab(t).startAs("stop-after").wantCode(0)
}

func init() { otherCommands["stop-after"] = continueBeforeStop }

func continueBeforeStop() {
	stopAfter(func() { _ = unix.Kill(unix.Getpid(), unix.SIGCONT) })
}

// If the kill is overdue because pawl itself was stopped, the killed processes still get
// their time to end. This needs a process of its own, because startChild reaps every
// child of its process, even those of other tests.
func TestStopWaitsAfterALateSIGKILL(t *testing.T) {
	newLab(t).startAs("kill-late").wantCode(0)
}

func init() { otherCommands["kill-late"] = killLate }

func killLate() {
	c, err := startChild("/bin/sleep", []string{"sleep", "1000"}, nil, catchSignals())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	gone := c.stop(func(begun time.Time) time.Time { return begun.Add(-time.Hour) })
	c.close()
	if !gone {
		fmt.Fprintln(os.Stderr, "stop reports that a process is left")
		os.Exit(1)
	}
	os.Exit(0)
}
