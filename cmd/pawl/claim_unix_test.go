//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	listed "github.com/pawl-go/pawl/internal/backends"
)

// A hungServer accepts connections, and does not answer.
func hungServer(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// wantGaveUp requires that pawl ended because of --wait, and not because of a bound of
// the backend. Tests in virtual time check how soon it ends: a busy machine takes seconds
// to start a process.
func (p *process) wantGaveUp(after string) {
	p.b.t.Helper()
	p.wantCode(exitUnavailable)
	if got := p.stderr.String(); !strings.Contains(got, `pawl: gave up on "x" after `+after+": ") {
		p.b.t.Errorf("it said %q", got)
	}
}

func TestWaitBoundsTheOpeningOfAHungServer(t *testing.T) {
	nightly(t, "it waits for real time to pass")
	b := newLab(t)
	b.env = []string{briefVariable + "=1"}
	b.url = "redis://" + hungServer(t)
	for after, args := range map[string][]string{"500ms": {"-w", "0.5"}, "3s": {"-n"}} {
		p := b.start(append(append([]string{"run"}, args...), "-E", "0", "x", "--", "touch", "ran")...)
		p.wantGaveUp(after)
	}
	if _, err := os.Stat(b.file("ran")); err == nil {
		t.Error("a command ran without the lock")
	}
}

// A user who reads the message in cron's mail must learn which server it was, and what to
// check.
func TestNoWaitSaysWhoDidNotAnswer(t *testing.T) {
	for _, backend := range listed.All {
		scheme, at, server := strings.Cut(backend.URL, "://")
		if !server {
			continue // it has no server
		}
		t.Run(scheme, func(t *testing.T) {
			b := newLab(t)
			b.env = []string{briefVariable + "=1"}
			addr := hungServer(t)
			b.url = scheme + "://joe:hunter2@" + addr
			if _, path, _ := strings.Cut(at, "/"); path != "" {
				b.url += "/x"
			}
			switch scheme {
			case "redlock":
				b.url += "," + hungServer(t) + "," + hungServer(t)
			case "postgres":
				b.url += "?sslmode=disable"
			}
			p := b.start("run", "-n", "x", "--", "touch", "ran")
			p.wantCode(exitUnavailable)
			got := p.stderr.String()
			hinted := regexp.MustCompile(`\((check the|.*can it be reached|.*nodes failed)`).MatchString(got)
			if !strings.Contains(got, addr) || !hinted || strings.Contains(got, "hunter2") {
				t.Errorf("it says %q", got)
			}
			t.Log(got)
		})
	}
}

func TestWaitBoundsTheOpeningOfAStalledFile(t *testing.T) {
	nightly(t, "it waits for real time to pass")
	b := newLab(t)
	b.env = []string{briefVariable + "=1"}
	_ = closeSoon(b.c) // its end would also end the test's lock
	f, err := os.OpenFile(b.file("locks.db"), os.O_RDWR, 0)
	noError(t, err)
	defer f.Close()
	all := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	noError(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &all))
	p := b.start("run", "-w", "0.5", "x", "--", "touch", "ran")
	p.wantGaveUp("500ms")
	p = b.start("run", "-n", "x", "--", "touch", "ran")
	p.wantGaveUp("3s")
}
