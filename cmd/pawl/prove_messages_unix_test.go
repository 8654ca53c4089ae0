//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// unproven are command lines of prove that are refused before a request is sent.
var unproven = [][]string{
	{"prove", "a", "b"}, {"prove", ""}, {"prove", "--url", "mem:", "redis://localhost"}, {"prove", "nosuch://host"},
	{"prove", "--check", "history", "redis://localhost"},
	{"prove", "--for", "9s", "redis://localhost"}, {"prove", "--for", "25h", "redis://localhost"}, {"prove", "--workers", "1", "redis://localhost"},
	{"prove", "--workers", "65", "redis://localhost"}, {"prove", "--ttl", "100ms", "redis://localhost"}, {"prove", "--rate", "-1", "redis://localhost"},
	{"prove", "--faults", "flood", "redis://localhost"}, {"prove", "--planted", "weeds", "redis://localhost"},
	{"prove", "--planted", "majority-of-one", "redis://localhost"}, {"prove", "--server-cmd", "true", "--server-pid", "1", "redis://localhost"},
	{"prove", "--server-pid", "-1", "redis://localhost"}, {"prove", "--server-pid", "abc"}, {"prove", "--seed", "abc"}, {"prove", "--seed", "-1"},
	{"prove", "--server-cmd", "true", "sqlite:x.db"},
	{"prove", "--faults", "server-kill", "redis://localhost"}, {"prove", "--faults", "failover", "redis://localhost"},
	{"prove", "--faults", "cut", "sqlite:x.db"}, {"prove", "--faults", "stop", "--out", "no/such/report.html", "sqlite:x.db"},
	{"prove", "--check", "no-such-file"}, {"prove", "--check", "readable"}, {"prove", "--check", "no-program"}, {"prove", "--check", "future.jsonl"},
	{"prove", "--check", "cut.jsonl"}, {"prove", "--check", "bad.jsonl"}, {"prove", "--check", "bad.jsonl", "--out", "no/such/report.html"},
	{"prove", "--check", "short.jsonl", "--out", "short-report.html"},
}

// histories are the files that some of these command lines read: a run in which two
// holders overlapped twice, and one that was too short.
func histories() map[string][]history.Line {
	second := int64(time.Second)
	run := history.Line{Run: &history.Run{
		Format: history.Format, Lock: "pawl", TTL: 2 * second, Names: []history.Name{{Name: "a", Kind: history.Mutex, Limit: 1}},
	}}
	end := []history.Line{{Left: &history.Left{At: 90 * second, Name: "a"}}, {End: &history.End{At: 90 * second}}}
	held := func(id, from, to int64) history.Line {
		from, to = from*second, to*second
		return history.Line{Claim: &history.Claim{
			ID: id, Worker: int(id), Life: 1, Name: "a", Mode: history.Whole, Weight: 1, How: history.Wait, Asked: from - 1, Answered: from,
			Answer: history.Granted, Got: from, Believed: to, Released: to, Freed: to + 1, Release: history.OK,
		}}
	}
	future := *run.Run
	future.Format++
	return map[string][]history.Line{
		"bad.jsonl":    append([]history.Line{run, held(1, 1, 3), held(2, 2, 4), held(3, 6, 8), held(4, 7, 9)}, end...),
		"short.jsonl":  append([]history.Line{run, held(1, 1, 2)}, end...),
		"cut.jsonl":    {run, held(1, 1, 2)},
		"future.jsonl": {{Run: &future}},
	}
}

func writeHistories(t *testing.T) {
	t.Helper()
	for name, lines := range histories() {
		var text bytes.Buffer
		w := history.NewWriter(&text)
		for _, l := range lines {
			must(w.Write(l))
		}
		must(w.Flush())
		noError(t, os.WriteFile(name, text.Bytes(), 0o600))
	}
}

// sayProofs prints what prove says about a database, and while it runs.
func sayProofs(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	writeHistories(t)
	for _, args := range unproven {
		fmt.Fprintf(out, "\n$ pawl%s\n", shown(args))
		if code := execute(v, args); code != 0 {
			fmt.Fprintf(out, "[exit code %d]\n", code)
		}
	}
	fmt.Fprint(out, "\n# prove, on a terminal\n")
	p := &proof{v: v}
	p.progress(prove.Progress{Phase: history.Faults, At: time.Minute, Of: 10 * time.Minute, Leases: 17042, Faults: 35})
	p.progress(prove.Progress{Phase: history.Drain, Leases: 17042, Faults: 35})

	fmt.Fprint(out, "\n\n# prove, on SQLite\n")
	_, err := p.kinds(nil, "sqlite:x.db")
	must(err)
	for _, c := range []struct {
		what    string
		damaged []string
	}{
		{"and its names are held", nil},
		{"and a row is damaged", []string{"@prove-1:a"}},
	} {
		fmt.Fprintf(out, "\n# prove, %s\n", c.what)
		url := damagedFile(t, []string{"@prove-1:a"}, c.damaged)
		err := (&inspector{url: url, path: []string{"prove-1"}}).begin(t.Context(), &history.Run{})
		v.sayError(errors.New(strings.ReplaceAll(err.Error(), filepath.Dir(strings.TrimPrefix(url, "sqlite:")), "DIR")))
	}
	fmt.Fprint(out, "\n# prove, when all is well\n")
	n := check.Numbers{Leases: 17042, Lost: 31, TakenOver: 64, Stale: 9, FaultsByKind: map[string]int{history.Stop: 12, history.Kill: 11}}
	must(p.say(&check.Verdict{Numbers: n}, "report.html", "report.jsonl"))
}

// Prove writes its result to standard output, so it fails if it cannot.
func TestProveOutputThatCannotBeWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	writeHistories(t)
	wantUnwritten(t, "prove", "--check", "short.jsonl")
}

// Prove does not touch the lease of another program.
func TestProveLeavesOthersAlone(t *testing.T) {
	b := newLab(t)
	mustGet(b.c.Mutex("a", pawl.WithTTL(time.Minute)).Lock(t.Context()))(t)
	l := &inspector{url: b.url, path: []string{"prove-1"}}
	var run history.Run
	if err := l.begin(t.Context(), &run); err != nil || !strings.HasPrefix(run.Server, "SQLite 3.") {
		t.Errorf("%v, version %q", err, run.Server)
	}
}
