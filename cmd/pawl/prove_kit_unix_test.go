//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"regexp"
	"testing"
	"time"
)

// A proveRun is a run of pawl prove that has ended.
type proveRun struct {
	code   int
	output string
	report string // its path
}

// prove runs pawl prove with few workers and a long TTL, for a busy machine with the race
// detector.
func (b *lab) prove(d time.Duration, args ...string) *proveRun {
	b.t.Helper()
	report := b.file("report-" + d.String() + ".html")
	p := b.start(append([]string{"prove", "--for", d.String(), "--ttl", "3s", "--workers", "4", "--rate", "60", "--out", report}, args...)...)
	select {
	case <-p.done:
	case <-time.After(d + 4*time.Minute):
		b.t.Fatalf("pawl prove does not end; it printed %s", p.stderr.String())
	}
	r := &proveRun{p.ProcessState.ExitCode(), p.stdout.String() + p.stderr.String(), report}
	if _, err := os.Stat(report); err != nil && r.code != exitUnavailable {
		b.t.Fatalf("exit code %d, and there is no report: %s", r.code, r.output)
	}
	return r
}

// proveLonger runs pawl prove for a short time. If isEnough rejects that run, it runs
// prove for longer: on a busy machine, a fault may not have happened.
func (b *lab) proveLonger(isEnough func(*proveRun) bool, args ...string) *proveRun {
	b.t.Helper()
	short := b.prove(15*time.Second, args...)
	if isEnough(short) {
		return short
	}
	b.t.Logf("a longer run follows: %s", short.output)
	return b.prove(45*time.Second, args...)
}

// brokeRule reports whether a run broke a rule.
func (r *proveRun) brokeRule(rule string) bool {
	return regexp.MustCompile(`violation \d+: ` + regexp.QuoteMeta(rule) + ": ").MatchString(r.output)
}

// logHistory logs the history of a run, because the test deletes its temporary folder.
func (r *proveRun) logHistory(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(historyPath(r.report))
	if err != nil {
		t.Error(err)
		return
	}
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	_, err = z.Write(text)
	must(err)
	must(z.Close())
	t.Logf("the history, which base64 -d FILE | gunzip > history.jsonl unpacks, and pawl prove --check reads:\n%s",
		base64.StdEncoding.EncodeToString(small.Bytes()))
}
