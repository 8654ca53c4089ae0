package drivertest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Where time is real, a subtest that was kept from running says nothing about the
// backend: what it wanted to see before an expiry it saw after it. If such a one fails,
// it is run again with a longer unit. One that fails and was on time has failed; and so
// has one of a topic that is timeless, for who may be in at the same time is no matter of
// being late.

// tries is how often a subtest is run at the most, each time with a unit twice as long.
const tries = 4

// attempt runs f until it passes, or fails while it was on time.
func (s *suite) attempt(t *testing.T, f func(k *kit)) {
	for try, u := 1, s.Unit; ; try, u = try+1, 2*u {
		k := newKit(t, s, u)
		k.notes = &notes{}
		done := make(chan struct{})
		go func() { // FailNow ends it
			defer close(done)
			f(k)
		}()
		<-done
		failures := k.notes.take()
		late := k.late()
		if len(failures) == 0 || late <= u/4 || try == tries {
			for _, f := range failures {
				t.Error(f)
			}
			return
		}
		t.Logf("%v late, where a unit was %v; once more, with a longer one, after %q", late.Round(time.Millisecond), u, failures)
	}
}

// notes are the failures of a subtest that may be run again.
type notes struct {
	mu       sync.Mutex // protects both
	failures []string
	over     bool
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.failures = append(n.failures, where()+what)
	}
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	return n.failures
}

// where is the line of the subtest that is being run, as far out on the stack as it is.
func where() (line string) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "(*suite).attempt") || !strings.Contains(f.Function, "/drivertest.") {
			return line
		}
		line = fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
		if !more {
			return line
		}
	}
}

func (k *kit) Error(args ...any) {
	k.Helper()
	if k.notes == nil {
		k.T.Error(args...)
		return
	}
	k.notes.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (k *kit) Errorf(format string, args ...any) {
	k.Helper()
	if k.notes == nil {
		k.T.Errorf(format, args...)
		return
	}
	k.notes.add(fmt.Sprintf(format, args...))
}

func (k *kit) Fatal(args ...any) {
	k.Helper()
	if k.notes == nil {
		k.T.Fatal(args...)
	}
	k.notes.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	runtime.Goexit()
}

func (k *kit) Fatalf(format string, args ...any) {
	k.Helper()
	if k.notes == nil {
		k.T.Fatalf(format, args...)
	}
	k.notes.add(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// late is how much longer than it let pass the subtest took.
func (k *kit) late() time.Duration { return time.Since(k.began) - time.Duration(k.asked.Load()) }
