package main

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kill -9 of pawl ends the command at once, long before the lease expires.
func TestKill9TakesTheCommandAlong(t *testing.T) {
	b := newLab(t)
	p := b.start("run", "--ttl", "1000", "x", "--", "sh", "-c", `trap "" TERM INT HUP; echo $$ > group; while :; do sleep 0.01; done`)
	pid := b.group()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code()
	eventually(t, "the command is gone", func() bool { return allDead(pid) })
	if len(b.entry("x").Holders) == 0 {
		t.Error("the lease is gone, too: what was waited for?")
	}
}

// A stopped process hears of nothing but SIGKILL and SIGCONT: so timeout(1) sends the one after the other, too.
func TestASignalThatAsksToEndReachesACommandThatIsStopped(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(unix.SignalName(s), func(t *testing.T) { reachesWhatIsStopped(t, s) })
	}
}

func reachesWhatIsStopped(t *testing.T, s syscall.Signal) {
	b := newLab(t)
	p := b.start("run", "x", "--", "sh", "-c", `trap "echo tidy > tidy; exit 7" INT TERM HUP QUIT; echo $$ > group; kill -STOP $$; while :; do sleep 0.01; done`)
	eventually(t, "it is stopped", func() bool { return state(b.group()) == "T" })
	b.signal(p, s)
	p.wantCode(7)
	if b.read("tidy") == "" {
		t.Errorf("it had no time to tidy up")
	}
}

// When the kill should have been long ago, because we were stopped ourselves, what is killed now has its time.
func TestWhatIsKilledLateHasItsTimeToGo(t *testing.T) {
	t.Parallel()
	c, err := startChild("/bin/sleep", []string{"sleep", "1000"}, nil, catchSignals())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if !c.stop(func(begun time.Time) time.Time { return begun.Add(-time.Hour) }) {
		t.Error("something is said to be left")
	}
}
