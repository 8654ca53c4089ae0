package fence_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/memlock"
)

// paused returns the fences of a holder that was paused until another had its lock, and
// of that other.
func paused(t *testing.T) (old, current uint64) {
	t.Helper()
	memory := memlock.NewMemory(nil)
	var leases []*pawl.Lease
	for range 2 {
		locks, err := pawl.New(memory.Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(context.Background()) })
		lease, err := locks.Mutex("account").ForceLock(t.Context()) // the first one hears of it too late
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	return leases[0].Fence(), leases[1].Fence()
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
	err := write("account", old)
	stale, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, pawl.ErrStale) {
		t.Fatalf("the late write: %v; want a StaleError", err)
	}
	if stale.Resource != "account" || stale.Fence != old || stale.Highest != current {
		t.Errorf("%+v; want %d below %d", stale, old, current)
	}
	if err := write("other", old); err != nil {
		t.Errorf("a write to another resource: %v", err)
	}
	if err := write("account", current); err != nil {
		t.Errorf("the holder's next write: %v", err)
	}
}

// rejects has what is no fence refused.
func rejects(t *testing.T, write func(resource string, fence uint64) error) {
	t.Helper()
	for resource, f := range map[string]uint64{"account": 0, "": 1, "huge": 1 << 63} {
		if err := write(resource, f); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%q with %d: %v; want ErrInvalid", resource, f, err)
		}
	}
}

func TestMemory(t *testing.T) {
	refuses(t, new(fence.Memory).Check)
	rejects(t, new(fence.Memory).Check)
	var guard fence.Memory
	guarded := func(resource string, f uint64) error {
		return guard.Guard(t.Context(), resource, f, func(context.Context) error { return nil })
	}
	refuses(t, guarded)
	rejects(t, guarded)
}

func TestReadersStandSideBySide(t *testing.T) {
	var m fence.Memory
	for _, f := range []uint64{5, 3, 9} { // readers, in any order
		if err := m.CheckReader("account", f); err != nil {
			t.Errorf("reader %d: %v", f, err)
		}
	}
	if err := m.Check("account", 7); err != nil {
		t.Errorf("a writer below a reader: %v", err)
	}
	if err := m.CheckReader("account", 6); !errors.Is(err, pawl.ErrStale) {
		t.Errorf("a reader from before the writer: %v", err)
	}
	if err := m.CheckReader("account", 9); err != nil {
		t.Errorf("one from after it: %v", err)
	}
	rejects(t, m.CheckReader)
}

// A check and its write are one: whoever has a higher fence writes after all with lower
// ones.
func TestGuardLetsOneWriteAtATime(t *testing.T) {
	var m fence.Memory
	var all sync.WaitGroup
	var written []uint64 // protected by the guard
	for f := range uint64(200) {
		all.Go(func() {
			_ = m.Guard(context.Background(), "account", f+1, func(context.Context) error {
				written = append(written, f+1)
				return nil
			})
		})
	}
	all.Wait()
	for i := range written[1:] {
		if written[i+1] < written[i] {
			t.Fatalf("%d was written after %d", written[i+1], written[i])
		}
	}
	if written[len(written)-1] != 200 {
		t.Errorf("the last is %d", written[len(written)-1])
	}
}

func BenchmarkMemory(b *testing.B) {
	var m fence.Memory
	for b.Loop() {
		if err := m.Check("account", 7); err != nil {
			b.Fatal(err)
		}
	}
}
