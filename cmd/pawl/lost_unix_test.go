//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childScripts are commands. SIGTERM ends Willing; the others are hard to stop. Each
// writes the number of its group to the file "group", and then writes the file "ready".
var childScripts = map[string]string{
	"Willing":       `echo $$ > group; echo ready > ready; exec sleep 1000`,
	"IgnoresTERM":   `trap "" TERM INT HUP; echo $$ > group; echo ready > ready; while :; do sleep 0.01; done`,
	"Grandchildren": `echo $$ > group; (trap "" TERM; (echo ready > ready; while :; do sleep 0.01; done) & wait) & wait; sleep 1000`,
	"Stopped":       `echo $$ > group; echo ready > ready; kill -STOP $$`,
	"EndedExceptAChild": `echo $$ > group; (trap "" TERM; echo ready > ready; while :; do sleep 0.01; done) >/dev/null 2>&1 &
		trap exit TERM; while :; do sleep 0.01; done`,
}

// nextHolderScript is the command of the next holder. It checks that no process of the
// last holder's group is alive. A dead process that was not reaped yet does not count.
const nextHolderScript = `for stat in /proc/[0-9]*/stat; do
		read -r line < $stat || continue
		set -- ${line##*) }
		case "$3 $1" in "$(cat group) Z"|"$(cat group) X") ;; "$(cat group) "*) echo "$line" >> overlap ;; esac
	done 2>/dev/null
	echo ran > ran`

func TestLostByABreak(t *testing.T) {
	t.Parallel()
	for name, child := range childScripts {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			grace, delay := "10", "2"
			if testing.Short() { // a slow machine needs more than 2 s, and the next holder waits for the delay
				grace, delay = "1", "1000"
			}
			p := b.start("run", "--grace", grace, "x", "--", "sh", "-c", child)
			b.awaitFile("ready")
			q := b.start("run", "x", "--", "sh", "-c", nextHolderScript)
			b.awaitWaiters("x", 1)
			b.start("break", "--yes", "--delay", delay, "x").wantCode(0)
			p.wantCode(exitLost)
			b.wantGone(b.group())
			if testing.Short() {
				b.signal(q, syscall.SIGTERM)
				q.wantCode(128 + int(syscall.SIGTERM))
			} else {
				q.wantCode(0)
			}
			if (b.read("ran") == "") != testing.Short() || b.read("overlap") != "" {
				t.Errorf("VIOLATION: when the next holder started, this process was alive: %q", b.read("overlap"))
			}
			if got := p.stderr.String(); !strings.Contains(got, `pawl: lost "x" (fence `) || !strings.Contains(got, "broken by ") || strings.Count(got, "pawl: ") != 1 {
				t.Errorf("it printed %q", got)
			}
		})
	}
}

// The backend goes away, so the lease ends by the holder's own clock.
func TestLostBecauseTheBackendIsGone(t *testing.T) {
	skipIfShort(t, "it waits for leases to end")
	t.Parallel()
	for name, child := range childScripts {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			p := b.start("run", "--ttl", "2", "x", "--", "sh", "-c", child)
			b.awaitFile("ready")
			group := b.group()
			for _, f := range []string{"locks.db", "locks.db-wal", "locks.db-shm"} {
				if err := os.Remove(b.file(f)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			last := time.Now() // the last time at which a renewal may have succeeded
			p.wantCode(exitLost)
			b.wantGone(group)
			if took := time.Since(last); took < 500*time.Millisecond {
				t.Errorf("the lease ended after %v, though half of it was left", took)
			}
			if got := p.stderr.String(); !strings.Contains(got, "unreachable") {
				t.Errorf("it printed %q", got)
			}
		})
	}
}

// Pawl is stopped until the lease has expired. However long that was, pawl then gives
// killed processes their time to end.
func TestLostWhilePawlWasPaused(t *testing.T) {
	skipIfShort(t, "a machine that stands still for two seconds loses the lock")
	b := newLab(t)
	const ttl = 1500 * time.Millisecond
	p := b.start("run", "--ttl", ttl.String(), "--grace", "0.6", "x", "--", "sh", "-c", childScripts["IgnoresTERM"])
	b.awaitFile("ready")
	stopped := time.Now()
	b.signal(p, syscall.SIGSTOP)
	eventually(t, "x has been free for long", func() bool {
		return len(b.entry("x").Holders) == 0 && time.Since(stopped) > ttl+killTimeout+100*time.Millisecond
	})
	b.signal(p, syscall.SIGCONT)
	p.wantCode(exitLost) // at once, whatever the grace
	b.wantGone(b.group())
	if got := p.stderr.String(); strings.Contains(got, "still running") || !strings.Contains(got, "stopping the command") {
		t.Errorf("it printed %q", got)
	}
}

// After kill -9 of pawl, the next holder gets the lock soon after the lease has expired,
// and not before.
func TestKill9LeavesTheLockUntilTheLeaseExpires(t *testing.T) {
	skipIfShort(t, "a machine that stands still for two seconds loses the lock")
	b := newLab(t)
	p := b.start("run", "--ttl", "1500ms", "x", "--", "sh", "-c", childScripts["Willing"])
	b.awaitFile("ready")
	q := b.start("run", "--ttl", "10", "x", "--", "sh", "-c", nextHolderScript+`; while ! test -e go; do sleep 0.01; done`)
	b.awaitWaiters("x", 1)
	noError(t, p.Process.Kill())
	p.code()
	// From here on nothing renews. The backend's clock is this host's.
	inspectedAt := time.Now()
	holders := b.entry("x").Holders
	if len(holders) != 1 || holders[0].Owner.PID != p.Process.Pid {
		t.Fatalf("the lease did not outlive its holder: %v", holders)
	}
	expires := inspectedAt.Add(holders[0].ExpiresIn)
	b.awaitFile("ran")
	e := b.entry("x")
	if since := e.Holders[0].Since; since.Before(expires.Truncate(time.Microsecond)) {
		t.Errorf("the next holder got the lock %v too early", expires.Sub(since))
	} else if since.After(expires.Add(15 * time.Second)) {
		t.Errorf("the next holder got the lock %v after the lease expired", since.Sub(expires))
	}
	if e.Holders[0].Fence <= holders[0].Fence {
		t.Errorf("the next fence is %d, want more than %d", e.Holders[0].Fence, holders[0].Fence)
	}
	b.write("go", "")
	q.wantCode(0)
}
