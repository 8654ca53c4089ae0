package pawl_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
)

// told is one event that an Observer got.
type told struct {
	what string
	pawl.Event
	err error
}

// listener is an Observer that keeps all its events, in their order.
type listener struct {
	then func(what string) // is called after each event; may be nil

	mu  sync.Mutex // protects all
	all []told
}

func (l *listener) hear(what string, e pawl.Event, err error) {
	l.mu.Lock()
	l.all = append(l.all, told{what, e, err})
	l.mu.Unlock()
	if l.then != nil {
		l.then(what)
	}
}

func (l *listener) heard() []told {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]told(nil), l.all...)
}

// count returns the number of events of a kind.
func (l *listener) count(what string) int {
	n := 0
	for _, t := range l.heard() {
		if t.what == what {
			n++
		}
	}
	return n
}

func (l *listener) observer() *pawl.Observer {
	return &pawl.Observer{
		Queued:      func(e pawl.QueuedEvent) { l.hear("waiting", e.Event, e.Held) },
		NotAcquired: func(e pawl.NotAcquiredEvent) { l.hear("refused", e.Event, e.Err) },
		Acquired:    func(e pawl.AcquiredEvent) { l.hear("acquired", e.Event, nil) },
		Released:    func(e pawl.ReleasedEvent) { l.hear("released", e.Event, e.Err) },
		Lost:        func(e pawl.LostEvent) { l.hear("lost", e.Event, e.Err) },
		Failed:      func(e pawl.FailedEvent) { l.hear("trouble", e.Event, e.Err) },
	}
}

// balanced fails the test unless each lease was reported as acquired, and then once as
// released or lost.
func (l *listener) balanced(t *testing.T) {
	t.Helper()
	acquired, over := map[uint64]bool{}, map[uint64]bool{}
	for _, e := range l.heard() {
		switch e.what {
		case "acquired":
			if acquired[e.Claim] {
				t.Errorf("claim %x of %q was acquired twice", e.Claim, e.Name)
			}
			acquired[e.Claim] = true
		case "released", "lost":
			if !acquired[e.Claim] {
				t.Errorf("claim %x of %q was %s, and not acquired", e.Claim, e.Name, e.what)
			}
			if over[e.Claim] {
				t.Errorf("claim %x of %q was %s after its end", e.Claim, e.Name, e.what)
			}
			over[e.Claim] = true
		}
	}
	if len(acquired) != len(over) {
		t.Errorf("%d leases were acquired, and %d ended", len(acquired), len(over))
	}
}

type spanKey struct{}

func span(name string) context.Context { return context.WithValue(background, spanKey{}, name) }

// inGoroutine runs f in a goroutine, and waits until f returns, panics or calls
// runtime.Goexit. It returns the value of a panic.
func inGoroutine(f func()) (panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
	}()
	<-done
	return panicked
}

// callbackFailures are the ways in which a callback of the client fails.
var callbackFailures = map[string]func(){
	"panics":             func() { panic("a bug") },
	"ends its goroutine": runtime.Goexit,
}

// failing returns a hook that fails the requests of one operation.
func failing(fails string) func(op string) error {
	return func(op string) error {
		if op == fails {
			return errNet
		}
		return nil
	}
}
