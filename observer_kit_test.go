package pawl_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
)

// event is one event that an Observer got.
type event struct {
	kind string
	pawl.Event
	err error
}

// eventRecorder is an Observer that keeps all its events, in their order.
type eventRecorder struct {
	afterEach func(kind string) // called after each event; may be nil

	mu     sync.Mutex // protects events
	events []event
}

func (l *eventRecorder) record(kind string, e pawl.Event, err error) {
	l.mu.Lock()
	l.events = append(l.events, event{kind, e, err})
	l.mu.Unlock()
	if l.afterEach != nil {
		l.afterEach(kind)
	}
}

func (l *eventRecorder) all() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]event(nil), l.events...)
}

// count returns the number of events of a kind.
func (l *eventRecorder) count(kind string) int {
	n := 0
	for _, e := range l.all() {
		if e.kind == kind {
			n++
		}
	}
	return n
}

func (l *eventRecorder) observer() *pawl.Observer {
	return &pawl.Observer{
		Queued:      func(e pawl.QueuedEvent) { l.record("queued", e.Event, e.Held) },
		NotAcquired: func(e pawl.NotAcquiredEvent) { l.record("refused", e.Event, e.Err) },
		Acquired:    func(e pawl.AcquiredEvent) { l.record("acquired", e.Event, nil) },
		Released:    func(e pawl.ReleasedEvent) { l.record("released", e.Event, e.Err) },
		Lost:        func(e pawl.LostEvent) { l.record("lost", e.Event, e.Err) },
		Failed:      func(e pawl.FailedEvent) { l.record("failed", e.Event, e.Err) },
	}
}

// checkBalance fails the test unless each lease was reported as acquired, and then once
// as released or lost.
func (l *eventRecorder) checkBalance(t *testing.T) {
	t.Helper()
	acquired, ended := map[uint64]bool{}, map[uint64]bool{}
	for _, e := range l.all() {
		switch e.kind {
		case "acquired":
			if acquired[e.Claim] {
				t.Errorf("claim %x of %q was acquired twice", e.Claim, e.Name)
			}
			acquired[e.Claim] = true
		case "released", "lost":
			if !acquired[e.Claim] {
				t.Errorf("claim %x of %q was %s without being acquired", e.Claim, e.Name, e.kind)
			}
			if ended[e.Claim] {
				t.Errorf("claim %x of %q was %s after its end", e.Claim, e.Name, e.kind)
			}
			ended[e.Claim] = true
		}
	}
	if len(acquired) != len(ended) {
		t.Errorf("%d leases were acquired, but %d ended", len(acquired), len(ended))
	}
}

type spanKey struct{}

func spanCtx(name string) context.Context { return context.WithValue(background, spanKey{}, name) }

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

// failRequests returns a hook that fails the requests of one operation.
func failRequests(failed string) func(op string) error {
	return func(op string) error {
		if op == failed {
			return errNet
		}
		return nil
	}
}
