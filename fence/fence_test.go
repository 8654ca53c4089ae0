package fence_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
)

func TestMemoryRefusesStaleFences(t *testing.T) {
	fencetest.ChecksStaleWrites(t, new(fence.Memory).Check)
	fencetest.ChecksArguments(t, new(fence.Memory).Check)
	var guard fence.Memory
	guarded := func(resource string, f uint64) error {
		return guard.Guard(t.Context(), resource, f, func(context.Context) error { return nil })
	}
	fencetest.ChecksStaleWrites(t, guarded)
	fencetest.ChecksArguments(t, guarded)
	fencetest.ChecksReadersAndWriters(t, guarded, guard.CheckReader)
	if err := guarded("a\x00b", 1); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a resource that PostgreSQL cannot store: %v", err)
	}
}

func TestGuardReaderRefusesAReaderAfterAWriter(t *testing.T) {
	var m fence.Memory
	read := func(f uint64, meanwhile func()) error {
		return m.GuardReader(t.Context(), "account", f, func(context.Context) error {
			meanwhile()
			return nil
		})
	}
	if err := read(5, func() { must(0, m.CheckReader("account", 6))(t) }); err != nil {
		t.Errorf("after another reader: %v", err)
	}
	fencetest.WantStale(t, read(5, func() { must(0, m.Check("account", 7))(t) }), "account", 5, 7)
	ran := false
	fencetest.WantStale(t, read(5, func() { ran = true }), "account", 5, 7)
	if ran {
		t.Error("GuardReader ran a read of a stale reader")
	}
}

func TestCompareRefusesStaleFences(t *testing.T) {
	highest := map[string]uint64{}
	write := func(resource string, f uint64) error {
		if err := fence.Compare(resource, f, highest[resource]); err != nil {
			return err
		}
		highest[resource] = f
		return nil
	}
	fencetest.ChecksStaleWrites(t, write)
	fencetest.ChecksArguments(t, write)
}

// A check and its write are one step. So a writer with a higher fence always writes after
// all writers with lower ones.
func TestGuardRunsOneWriteAtATime(t *testing.T) {
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
		t.Errorf("the last write has fence %d, want 200", written[len(written)-1])
	}
}

func BenchmarkMemory(b *testing.B) {
	var m fence.Memory
	for b.Loop() {
		noError(b, m.Check("account", 7))
	}
}
