// Package fencetest has tests for the fence check of every store. The tests of package
// fence run them, and the tests of internal/e2e/fence run them with real clients. It also
// has tests for the lease check of every SQL engine.
package fencetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// TB has the methods of a *testing.T that this package needs.
type TB interface {
	servertest.TB
	Context() context.Context
}

// must returns v, or fails the test if err is not nil. It is called as must(f())(t).
func must[T any](v T, err error) func(t TB) T {
	return func(t TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return v
	}
}

// NewMemoryClients returns a function that opens clients of one memory backend, and one
// that advances the backend's clock.
func NewMemoryClients(t TB) (client func() *pawl.Client, sleep func(time.Duration)) {
	t.Helper()
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC).UnixNano())
	m := memlock.NewMemory(&memlock.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }})
	client = func() *pawl.Client {
		locks := must(pawl.New(m.Driver(), nil))(t)
		t.Cleanup(func() { _ = locks.Close() })
		return locks
	}
	return client, func(d time.Duration) { now.Add(int64(d)) }
}

// pausedFences returns the fences of two holders. The first was paused until its lease
// expired, and the second holds the lock now.
func pausedFences(t TB) (old, current uint64) {
	t.Helper()
	client, sleep := NewMemoryClients(t)
	first := must(client().Mutex("account", pawl.WithTTL(time.Minute)).Lock(t.Context()))(t)
	sleep(61 * time.Second) // no renewal happens meanwhile, because the holder's own clock stands still
	second := must(client().Mutex("account", pawl.WithTTL(time.Minute)).TryLock(t.Context()))(t)
	if err := first.Err(); err != nil {
		t.Fatalf("the paused holder already knows that it lost the lock: %v", err)
	}
	return first.Fence(), second.Fence()
}

// ChecksStaleWrites checks three writes: the first holder's, the second holder's, and a
// late write of the first, which must be refused.
func ChecksStaleWrites(t TB, write func(resource string, fence uint64) error) {
	t.Helper()
	old, current := pausedFences(t)
	for _, f := range []uint64{old, old, current, current} {
		if err := write("account", f); err != nil {
			t.Fatalf("the write of %d: %v", f, err)
		}
	}
	WantStale(t, write("account", old), "account", old, current)
	if err := write("other", old); err != nil {
		t.Errorf("a write to another resource: %v", err)
	}
	if err := write("account", current); err != nil {
		t.Errorf("the holder's next write: %v", err)
	}
}

// WantStale checks that err is the error of a stale fence.
func WantStale(t TB, err error, resource string, f, highest uint64) {
	t.Helper()
	got, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, pawl.ErrStale) {
		t.Fatalf("fence %d after %d: %v; want a StaleError", f, highest, err)
	}
	if want := (fence.StaleError{Resource: resource, Fence: f, Highest: highest}); *got != want {
		t.Errorf("%+v; want %+v", *got, want)
	}
}

// ChecksArguments checks that a check refuses invalid fences and names.
func ChecksArguments(t TB, check func(resource string, fence uint64) error) {
	t.Helper()
	ChecksInvalidFences(t, check)
	for _, resource := range []string{"", "\xff", strings.Repeat("x", fence.MaxResource+1)} {
		WantRejected(t, check, resource, 1)
	}
}

// ChecksInvalidFences checks that a check refuses two fences: 0, which FenceOf also
// returns if the lease is on another name, and a number too large for a store.
func ChecksInvalidFences(t TB, check func(resource string, fence uint64) error) {
	t.Helper()
	client, _ := NewMemoryClients(t)
	if err := client().Mutex("other").Do(t.Context(), func(ctx context.Context) error {
		other, _ := pawl.FenceOf(ctx, "account")
		WantRejected(t, check, "account", other)
		return nil
	}); err != nil {
		t.Fatalf("%v", err)
	}
	WantRejected(t, check, "zero", 0)
	WantRejected(t, check, "huge", 1<<63)
}

// WantRejected checks that a check refuses an argument as invalid, and not as stale.
func WantRejected(t TB, check func(resource string, fence uint64) error, resource string, f uint64) {
	t.Helper()
	err := check(resource, f)
	if _, ok := errors.AsType[*pawl.InvalidError](err); !ok || !errors.Is(err, pawl.ErrInvalid) || errors.Is(err, pawl.ErrStale) {
		t.Errorf("%.20q with %d: %v; want an InvalidError", resource, f, err)
	}
}

// ChecksReadersAndWriters checks concurrent readers and writers: stale ones are refused.
func ChecksReadersAndWriters(t TB, write, read func(resource string, fence uint64) error) {
	t.Helper()
	for _, f := range []uint64{5, 3, 9} { // in any order
		if err := read("shared", f); err != nil {
			t.Errorf("reader %d beside others: %v", f, err)
		}
	}
	WantStale(t, write("shared", 7), "shared", 7, 9) // a writer that held before the last reader
	for _, f := range []uint64{10, 10} {
		if err := write("shared", f); err != nil {
			t.Errorf("the next writer: %v", err)
		}
	}
	WantStale(t, read("shared", 9), "shared", 9, 10) // a reader that held before that writer
	for _, f := range []uint64{12, 11} {
		if err := read("shared", f); err != nil {
			t.Errorf("reader %d, after the writer: %v", f, err)
		}
	}
	WantStale(t, write("shared", 10), "shared", 10, 12)
	for _, f := range []uint64{12, 13} { // a writer may use the fence of its own read
		if err := write("shared", f); err != nil {
			t.Errorf("writer %d: %v", f, err)
		}
	}
	WantStale(t, read("shared", 11), "shared", 11, 13)
	ChecksInvalidFences(t, read)
}
