//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// sayProve prints the messages of pawl prove: its progress, the errors about a database,
// and the verdict.
func sayProve(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	fmt.Fprint(out, "\n# prove, on a terminal\n")
	p := &proof{v: v}
	p.progress(prove.Progress{Phase: history.Faults, Elapsed: time.Minute, Length: 10 * time.Minute, Leases: 17042, Faults: 35})
	p.progress(prove.Progress{Phase: history.Drain, Leases: 17042, Faults: 35})

	fmt.Fprint(out, "\n\n# prove, on SQLite\n")
	_, err := p.faultKinds(nil, "sqlite:x.db")
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
		err := (&inspector{url: url, namespaces: []string{"prove-1"}}).begin(t.Context(), &history.Run{})
		v.sayError(errors.New(strings.ReplaceAll(err.Error(), filepath.Dir(strings.TrimPrefix(url, "sqlite:")), "DIR")))
	}
	fmt.Fprint(out, "\n# prove, when all is well\n")
	n := check.Numbers{Leases: 17042, Lost: 31, TakenOver: 64, Stale: 9, FaultsByKind: map[string]int{history.Stop: 12, history.Kill: 11}}
	must(p.sayVerdict(&check.Verdict{Numbers: n}, "report.html", "report.jsonl"))
}

// Prove does not touch the lease of another program.
func TestProveLeavesOtherLeasesAlone(t *testing.T) {
	b := newLab(t)
	mustGet(b.c.Mutex("a", pawl.WithTTL(time.Minute)).Lock(t.Context()))(t)
	l := &inspector{url: b.url, namespaces: []string{"prove-1"}}
	var run history.Run
	if err := l.begin(t.Context(), &run); err != nil || !strings.HasPrefix(run.Server, "SQLite 3.") {
		t.Errorf("begin returns %v, and the version is %q; want SQLite 3", err, run.Server)
	}
}
