package fencetest

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

//go:embed testdata/paused.txt
var wantStory string

// A ReportStore is a store to which two holders of one lock write a report.
type ReportStore struct {
	Write func(lease *pawl.Lease, text string) error
	Read  func() string
}

// ChecksStory pauses a holder past its TTL, so that the store refuses its write. The text
// of all answers must be the same for every store, as in docs/fencing.md.
func ChecksStory(t TB, store ReportStore) {
	t.Helper()
	var got strings.Builder
	client, sleep := NewMemoryClients(t)
	write := func(holder string, lease *pawl.Lease, text string) {
		answer := "ok"
		if err := store.Write(lease, text); err != nil {
			answer = err.Error()
		}
		fmt.Fprintf(&got, "%s writes %q with fence %d:\n    %s\n", holder, text, lease.Fence(), answer)
	}
	one := must(client().Mutex("report", pawl.WithTTL(30*time.Second)).Lock(t.Context()))(t)
	write("one", one, "first draft")
	fmt.Fprintln(&got, "one is paused, and its lease of 30s runs out")
	sleep(31 * time.Second)
	two := must(client().Mutex("report", pawl.WithTTL(30*time.Second)).Lock(t.Context()))(t)
	write("two", two, "second draft")
	fmt.Fprintln(&got, "one goes on, and still believes that it holds the lock:", one.Err() == nil)
	write("one", one, "first draft, corrected")
	write("two", two, "third draft")
	fmt.Fprintf(&got, "stored: %q\n", store.Read())

	if got.String() != wantStory {
		t.Errorf("the story is:\n%s\nwant:\n%s", got.String(), wantStory)
	}
}
