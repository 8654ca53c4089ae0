package fence_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/memlock"
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// memory is a place for locks where an hour passes when the test says so.
func memory(t *testing.T) (client func() *pawl.Client, sleep func(time.Duration)) {
	t.Helper()
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC).UnixNano())
	m := memlock.NewMemory(&memlock.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }})
	client = func() *pawl.Client {
		locks := must(pawl.New(m.Driver(), nil))(t)
		t.Cleanup(func() { _ = locks.Close(context.Background()) })
		return locks
	}
	return client, func(d time.Duration) { now.Add(int64(d)) }
}

// paused returns the fences of a holder that was paused until its lease was over and
// another had the lock, and of that other.
func paused(t *testing.T) (old, current uint64) {
	t.Helper()
	client, sleep := memory(t)
	first := must(client().Mutex("account", pawl.WithTTL(time.Minute)).Lock(t.Context()))(t)
	sleep(61 * time.Second) // what it does not renew in, for its own clock stands still
	second := must(client().Mutex("account", pawl.WithTTL(time.Minute)).TryLock(t.Context()))(t)
	if err := first.Err(); err != nil {
		t.Fatalf("the paused holder knows: %v", err)
	}
	return first.Fence(), second.Fence()
}

// refuses has a write of each checked: the first holder's, the second's, and one of the
// first that comes late.
func refuses(t *testing.T, write func(resource string, fence uint64) error) {
	t.Helper()
	old, current := paused(t)
	for _, f := range []uint64{old, old, current, current} {
		if err := write("account", f); err != nil {
			t.Fatalf("the write of %d: %v", f, err)
		}
	}
	stale(t, write("account", old), "account", old, current)
	if err := write("other", old); err != nil {
		t.Errorf("a write to another resource: %v", err)
	}
	if err := write("account", current); err != nil {
		t.Errorf("the holder's next write: %v", err)
	}
}

func stale(t *testing.T, err error, resource string, f, highest uint64) {
	t.Helper()
	got, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, pawl.ErrStale) {
		t.Fatalf("fence %d after %d: %v; want a StaleError", f, highest, err)
	}
	if want := (fence.StaleError{Resource: resource, Fence: f, Highest: highest}); *got != want {
		t.Errorf("%+v; want %+v", *got, want)
	}
}

// rejects has what is no fence refused, and what is no name.
func rejects(t *testing.T, check func(resource string, fence uint64) error) {
	t.Helper()
	rejectsNumbers(t, check)
	for _, resource := range []string{"", "\xff", strings.Repeat("x", fence.MaxResource+1)} {
		invalid(t, check, resource, 1)
	}
}

// rejectsNumbers tries 0, which is also what FenceOf says where the lease is on another
// name, and what no store can keep.
func rejectsNumbers(t *testing.T, check func(resource string, fence uint64) error) {
	t.Helper()
	client, _ := memory(t)
	if err := client().Mutex("other").Do(t.Context(), func(ctx context.Context) error {
		other, _ := pawl.FenceOf(ctx, "account")
		invalid(t, check, "account", other)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	invalid(t, check, "zero", 0)
	invalid(t, check, "huge", 1<<63)
}

func invalid(t *testing.T, check func(resource string, fence uint64) error, resource string, f uint64) {
	t.Helper()
	err := check(resource, f)
	if _, ok := errors.AsType[*pawl.InvalidError](err); !ok || !errors.Is(err, pawl.ErrInvalid) || errors.Is(err, pawl.ErrStale) {
		t.Errorf("%.20q with %d: %v; want an InvalidError", resource, f, err)
	}
}

// shares is what readers, who hold side by side, are refused for, and what for them.
func shares(t *testing.T, write, read func(resource string, fence uint64) error) {
	t.Helper()
	for _, f := range []uint64{5, 3, 9} { // in any order
		if err := read("shared", f); err != nil {
			t.Errorf("reader %d beside others: %v", f, err)
		}
	}
	stale(t, write("shared", 7), "shared", 7, 9) // a writer who held before the last reader
	for _, f := range []uint64{10, 10} {
		if err := write("shared", f); err != nil {
			t.Errorf("the next writer: %v", err)
		}
	}
	stale(t, read("shared", 9), "shared", 9, 10) // a reader who held before that writer
	for _, f := range []uint64{12, 11} {
		if err := read("shared", f); err != nil {
			t.Errorf("reader %d, after the writer: %v", f, err)
		}
	}
	stale(t, write("shared", 10), "shared", 10, 12)
	for _, f := range []uint64{12, 13} { // 12 reads before it writes
		if err := write("shared", f); err != nil {
			t.Errorf("writer %d: %v", f, err)
		}
	}
	stale(t, read("shared", 11), "shared", 11, 13)
	rejectsNumbers(t, read)
}
