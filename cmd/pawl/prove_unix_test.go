//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A run that breaks a rule fails the test. A run that proves nothing does not fail it,
// because this machine may be so busy that a fault never happened.
func TestProveFindsNoViolation(t *testing.T) {
	skipIfShort(t, "its workers and other tests would starve each other")
	for name, c := range map[string]struct {
		url    func(t *testing.T, b *lab) string
		faults string
	}{
		"SQLite": {func(_ *testing.T, b *lab) string { return fileURL(b.file("proven.db")) }, "overstay,kill"},
		"Redis":  {func(t *testing.T, _ *lab) string { return "redis://" + redistest.Start(t).Addr }, "overstay,swallow"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSerialLab(t)
			r := b.proveLonger(func(r *proveRun) bool { return r.code != exitOther }, "--faults", c.faults, c.url(t, b))
			switch {
			case r.code == 0 && strings.Contains(r.output, "the locks held\n"):
			case r.code == exitOther && strings.Contains(r.output, "proves nothing: "):
				t.Logf("this machine is too busy: %s", r.output)
			default:
				t.Errorf("exit code %d: %s", r.code, r.output)
				r.logHistory(t)
			}
		})
	}
}

// The command has each flag that was given, but no secret.
func TestTheRepeatCommandHasNoSecret(t *testing.T) {
	p := &proof{
		loc: &location{namespace: "secret"}, duration: time.Minute, ttl: time.Second, workers: 8, rate: 100, seed: 7,
		faults: []string{"stop", "kill"}, planted: "two-leaders", mayForget: true,
		server: prove.ServerOptions{Command: "start secret", PID: 42, FailOver: "failover secret"},
	}
	const want = "pawl prove --for 1m0s --workers 8 --ttl 1s --rate 100 --seed 7 --faults stop,kill --planted two-leaders --forgets" +
		" --server-cmd LINE --server-pid ID --failover-cmd LINE --namespace NAMESPACE URL"
	if got := p.repeatCommand(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The planted bugs are at the edges of Pawl: in the backend's steps, in its answers, and
// in the notification of the holder.
func TestProveFindsPlantedBugs(t *testing.T) {
	skipIfShort(t, "its workers and other tests would starve each other")
	for bug, rules := range map[string][]string{
		"release-without-token": {"calm-loss", "overlap"},
		"fence-falls":           {"fence-falls"},
		"loss-not-told":         {"loss-not-seen", "overlap"},
	} {
		t.Run(bug, func(t *testing.T) {
			b := newSerialLab(t)
			finds := func(r *proveRun) bool { return r.code == exitUnsound && slices.ContainsFunc(rules, r.brokeRule) }
			r := b.proveLonger(finds, "--faults", "stop,overstay", "--planted", bug, "redis://"+redistest.Start(t).Addr)
			if !finds(r) {
				t.Errorf("exit code %d, and none of %q is broken: %s", r.code, rules, r.output)
				r.logHistory(t)
			}
		})
	}
}

// An operator can end prove early, and gets the report of the run so far.
func TestProveEndsOnASignal(t *testing.T) {
	b := newLab(t)
	p := b.start("prove", "--for", "1h", "--ttl", "30s", "--workers", "2", "--rate", "60", "--out", b.file("report.html"), b.url)
	eventually(t, "a worker has a lock", func() bool {
		for e, err := range b.c.List(t.Context(), "") {
			return err == nil && len(e.Holders) > 0
		}
		return false
	})
	b.signal(p, os.Interrupt)
	p.wantCode(exitOther)
	if output := p.stdout.String(); !strings.Contains(output, "proves nothing: The run was interrupted after ") || !strings.Contains(b.read("report.html"), "</html>") {
		t.Errorf("it ended without a report: %s %s", output, p.stderr.String())
	}
	if output := p.stderr.String(); !strings.Contains(output, ": 1h0m0s with 2 workers; the report will be in "+b.file("report.html")) {
		t.Errorf("the message about the run is missing: %s", output)
	}
	for e, err := range b.c.List(t.Context(), "") {
		if err != nil || len(e.Holders)+len(e.Waiters) > 0 {
			t.Errorf("it left %+v, %v", e, err)
		}
	}
}

func TestProveNeedsAServerThatStays(t *testing.T) {
	b := newLab(t)
	p := b.start("prove", "--server-cmd", "true", "--out", b.file("report.html"), "redis://127.0.0.1:"+servertest.FreePort(t))
	p.wantCode(exitOther)
	if output := p.stderr.String(); !strings.Contains(output, "has ended; the command must not return while the server runs") {
		t.Errorf("it printed %s", output)
	}
	if files, err := os.ReadDir(b.dir); err != nil || slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "report") }) {
		t.Errorf("it left %v, %v", files, err)
	}
}
