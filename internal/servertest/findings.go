package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Findings has a line for each finding: its severity, subject and detail.
type Findings []string

// FindingsOf returns the findings of d without the servers' versions. Each of the
// findings must have advice.
func FindingsOf(tb TB, d driver.Diagnoser) (all Findings) {
	tb.Helper()
	list, err := d.Diagnose(context.Background())
	noError(tb, err)
	for _, f := range list {
		if f.Advice == "" && strings.HasSuffix(f.Subject, "server") { // in a quorum the names of nodes come first
			continue
		}
		if f.Advice == "" {
			tb.Errorf("%+v has no advice", f)
		}
		all = append(all, string(f.Severity)+" "+f.Subject+" "+f.Detail)
	}
	return all
}

// Have reports whether a finding begins with the first text and contains the others.
func (f Findings) Have(words ...string) bool {
	for _, line := range f {
		ok := strings.HasPrefix(line, words[0])
		for _, w := range words[1:] {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			return true
		}
	}
	return false
}

// Finds checks that a finding begins with the first text and contains the others.
func Finds(tb TB, d driver.Diagnoser, words ...string) {
	tb.Helper()
	if found := FindingsOf(tb, d); !found.Have(words...) {
		tb.Errorf("Diagnose finds %q; want %q", found, words)
	}
}

// FindsOnly checks that the doctor has one finding, which begins with the first text and
// contains the others. Without a text, the doctor must find nothing. It asks again if the
// server did not answer in time.
func FindsOnly(tb TB, d driver.Diagnoser, words ...string) {
	tb.Helper()
	found := FindingsOf(tb, d)
	for tries := 0; tries < 5 && strings.Contains(fmt.Sprint(found), "does not answer in time"); tries++ {
		found = FindingsOf(tb, d)
	}
	if len(found) != min(len(words), 1) || len(found) > 0 && !found.Have(words...) {
		tb.Errorf("Diagnose finds %q; want only %q", found, words)
	}
}

// WantDriverError checks that an error is a [driver.Error] with this text in its hint,
// and returns it.
func WantDriverError(tb TB, err error, permanent bool, hint string) *driver.Error {
	tb.Helper()
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		tb.Fatalf("%v; want a driver.Error with %q in its hint", err, hint)
	}
	if e.Permanent != permanent || !strings.Contains(e.Hint, hint) {
		tb.Errorf("%v has Permanent=%t; want %t, and %q in the hint", err, e.Permanent, permanent, hint)
	}
	return e
}
