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

// A proving is a run of pawl prove that has ended.
type proving struct {
	code   int
	said   string
	report string // the path
}

// prove runs pawl prove, with a TTL that is long for a busy machine with the race
// detector, and few workers.
func (b *lab) prove(d time.Duration, args ...string) *proving {
	b.t.Helper()
	report := b.file("report-" + d.String() + ".html")
	p := b.start(append([]string{"prove", "--for", d.String(), "--ttl", "3s", "--workers", "4", "--rate", "60", "--out", report}, args...)...)
	select {
	case <-p.done:
	case <-time.After(d + 4*time.Minute):
		b.t.Fatalf("pawl prove does not end; it said %s", p.stderr.String())
	}
	r := &proving{p.ProcessState.ExitCode(), p.stdout.String() + p.stderr.String(), report}
	if _, err := os.Stat(report); err != nil && r.code != exitUnavailable {
		b.t.Fatalf("exit code %d, and there is no report: %s", r.code, r.said)
	}
	return r
}

// proveLonger runs pawl prove until it is content, or for the last of these times. A run
// on a busy machine may be too short for a fault.
func (b *lab) proveLonger(content func(*proving) bool, args ...string) *proving {
	b.t.Helper()
	short := b.prove(15*time.Second, args...)
	if content(short) {
		return short
	}
	b.t.Logf("a longer one follows: %s", short.said)
	return b.prove(45*time.Second, args...)
}

// broke reports whether a run broke a rule.
func (r *proving) broke(rule string) bool {
	return regexp.MustCompile(`violation \d+: ` + regexp.QuoteMeta(rule) + ": ").MatchString(r.said)
}

// logHistory logs the history of a run: a temporary folder is gone when it is looked for.
func (r *proving) logHistory(t *testing.T) {
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
