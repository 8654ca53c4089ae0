//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
)

// A leader whose command is hard to stop does not lead again before all processes of the
// command have ended.
func TestALeaderLeadsAgainAfterItsCommandHasEnded(t *testing.T) {
	skipIfShort(t, "a slow machine may stop the command after the delay of the break")
	t.Parallel()
	for name, child := range childScripts {
		t.Run(name, func(t *testing.T) {
			b := newLab(t)
			p := b.start("elect", "--grace", "10", "x", "--", "sh", "-c", "if test -e group; then "+nextHolderScript+"; else "+child+"\nfi")
			b.awaitFile("ready")
			group := b.group()
			b.start("break", "--yes", "--delay", "2", "x").wantCode(0)
			p.wantCode(0)
			b.wantGone(group)
			if b.read("ran") == "" || b.read("overlap") != "" {
				t.Errorf("VIOLATION: when it led again, this process was alive: %q", b.read("overlap"))
			}
			if got := p.stderr.String(); strings.Count(got, "pawl: ") != 1 {
				t.Errorf("it printed %q", got)
			}
		})
	}
}

// While pawl leads, its command gets the signal. Otherwise the signal ends the campaign.
func TestASignalReachesTheLeadersCommandOrEndsTheCampaign(t *testing.T) {
	b := newLab(t)
	p := b.start("elect", "x", "--", "sh", "-c", `trap "exit 9" USR1; echo ready > ready; while :; do sleep 0.01; done`)
	b.awaitFile("ready")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1} {
		q := b.start("elect", "x", "--", "touch", "ran")
		b.awaitWaiters("x", 1)
		b.signal(q, syscall.SIGCONT)
		b.signal(q, s)
		q.wantCode(128 + int(s))
		if n := len(b.entry("x").Waiters); n != 0 {
			t.Errorf("after %v, %d wait", s, n)
		}
	}
	b.signal(p, syscall.SIGUSR1)
	p.wantCode(9)
	q := b.start("elect", "x", "--", "sh", "-c", childScripts["Willing"])
	b.awaitFile("group")
	eventually(t, "it leads", func() bool { return len(b.entry("x").Holders) > 0 })
	b.signal(q, syscall.SIGTERM)
	q.wantCode(128 + int(syscall.SIGTERM))
	if e := b.entry("x"); len(e.Holders) > 0 || b.read("ran") != "" {
		t.Errorf("x is held: %+v, or a candidate without the lead ran its command: %q", e, b.read("ran"))
	}
}

// SIGTERM hands the lead over as soon as the command has ended, without waiting for the
// TTL, which is 30 days here.
func TestSIGTERMHandsTheLeadOver(t *testing.T) {
	b := newLab(t)
	p := b.start("elect", "--ttl", "720h", "x", "--", "sh", "-c", childScripts["Willing"])
	b.awaitFile("group")
	q := b.start("elect", "--ttl", "720h", "x", "--", "touch", "ran")
	b.awaitWaiters("x", 1)
	b.signal(p, syscall.SIGTERM)
	p.wantCode(128 + int(syscall.SIGTERM))
	q.wantCode(0)
}

// A signal ends acquire while it waits, and leaves nothing behind.
func TestASignalEndsAWaitingAcquire(t *testing.T) {
	b := newLab(t)
	holder := b.start("run", "x", "--", "sleep", "1000")
	b.awaitHeld("x")
	p := b.start("acquire", "--handle", "h", "x")
	b.awaitWaiters("x", 1)
	b.signal(p, syscall.SIGTERM)
	p.wantCode(128 + int(syscall.SIGTERM))
	if got := b.file("h"); b.read("h") != "" || len(b.entry("x").Waiters) > 0 {
		t.Errorf("%s exists, or acquire still waits", got)
	}
	b.signal(holder, syscall.SIGTERM)
	holder.wantCode(128 + int(syscall.SIGTERM))
}
