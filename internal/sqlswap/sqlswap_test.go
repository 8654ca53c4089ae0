package sqlswap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// scan calls Scan for some names, and counts the pages that it reads.
func scan(names []string, prefix string, reads *int) iter.Seq2[string, error] {
	slices.Sort(names)
	return Scan(prefix, func(from string, n int) ([]string, error) {
		*reads++
		begin, _ := slices.BinarySearch(names, from)
		return names[begin:min(begin+n, len(names))], nil
	}, func(name string) string { return name })
}

func TestScanYieldsTheNamesWithAPrefixPageByPage(t *testing.T) {
	names := []string{"a", "job", "jobs", "z"}
	for i := range 2 * PageSize {
		names = append(names, fmt.Sprintf("job-%03d", i))
	}
	for prefix, want := range map[string]int{"": len(names), "job-": 2 * PageSize, "job": 2*PageSize + 2, "job-01": 10, "none": 0} {
		var got []string
		reads := 0
		for name, err := range scan(names, prefix, &reads) {
			if err != nil || !strings.HasPrefix(name, prefix) {
				t.Errorf("%q: %q, %v", prefix, name, err)
			}
			got = append(got, name)
		}
		if len(got) != want || !slices.IsSorted(got) || len(slices.Compact(got)) != want {
			t.Errorf("%q: %d names, want %d, each once", prefix, len(got), want)
		}
		if most := want/PageSize + 1; reads > most {
			t.Errorf("%q: %d reads, want %d at most", prefix, reads, most)
		}
	}
	reads := 0
	for range scan(names, "", &reads) {
		break
	}
	if reads != 1 {
		t.Errorf("a caller that stops at once costs %d reads, want 1", reads)
	}
}

func TestScanYieldsAnErrorAndEnds(t *testing.T) {
	down := errors.New("down")
	yielded := 0
	failingPage := func(string, int) ([]string, error) { return nil, down }
	for _, err := range Scan("", failingPage, func(name string) string { return name }) {
		if yielded++; !errors.Is(err, down) {
			t.Errorf("Scan yields the error %v", err)
		}
	}
	if yielded != 1 {
		t.Errorf("Scan yields %d times, want once", yielded)
	}
}

func TestLoadResultsDistinguishesThreeCases(t *testing.T) {
	swaps := []swap.Swap{{Name: "first"}, {Name: "done", Version: 1}, {Name: "unchanged", Version: 2}, {Name: "other", Version: 3}, {Name: "gone", Version: 4}}
	results := []swap.Swapped{{}, {Version: 11}, {Version: 12}, {Version: 13}, {Version: 14}}
	stored := map[string]swap.Stored{"done": {Version: 11}, "unchanged": {Version: 2}, "other": {Version: 99}}
	load := func(_ context.Context, names []string) (all []swap.Stored, err error) {
		for _, name := range names {
			all = append(all, stored[name])
		}
		return all, nil
	}
	var unchanged []int
	if err := LoadResults(t.Context(), load, swaps, results, []int{1, 2, 3, 4}, func(i int) { unchanged = append(unchanged, i) }); err != nil {
		t.Fatal(err)
	}
	if !results[1].Done || !slices.Equal(unchanged, []int{2}) {
		t.Errorf("the stored swap: %+v, want it done; the unchanged swaps are %v, want [2]", results[1], unchanged)
	}
	if r := results[3]; r.Done || !r.HasStored || r.Stored.Version != 99 {
		t.Errorf("a name with another value: %+v, want that value", r)
	}
	if r := results[4]; r.Done || !r.HasStored || r.Stored.Version != 0 {
		t.Errorf("a name without a value: %+v, want no value", r)
	}
	if results[0].Done || results[0].HasStored {
		t.Errorf("a result that was not requested: %+v, want no change", results[0])
	}
}

// A row that an operator emptied must not count as a free name.
func TestAnEmptiedRowIsDamaged(t *testing.T) {
	for _, value := range [][]byte{nil, {}} {
		s := StoredOf(7, value)
		if _, err := locktable.Decode(s.Value); err == nil || len(s.Value) == 0 || s.Version != 7 {
			t.Errorf("%+v can be decoded, want an invalid value with version 7", s)
		}
	}
}

// A Tidier runs one Tidy at a time, with a timeout, and none after the store's Close. Its
// caller does not wait, so a Tidy that waits for a locked row delays no swap.
func TestATidierRunsOneTidyAtATime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		defer end()
		var running engine.Background
		var calls atomic.Int32
		tidier := Tidier{Life: life, Running: &running, Tidy: func(ctx context.Context) {
			calls.Add(1)
			<-ctx.Done()
		}}
		for range 100 * swapsPerTidying {
			tidier.CountSwap()
		}
		time.Sleep(tidyTimeout / 2)
		tidier.Begin()
		time.Sleep(tidyTimeout)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls of Tidy, want 1", n)
		}
		tidier.Begin()
		time.Sleep(time.Second)
		end()
		running.Close()
		tidier.Begin()
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls of Tidy, want 2", n)
		}
	})
}

func TestForgettableRowsAreOldAndReadable(t *testing.T) {
	now := locktable.At(time.Now())
	entry := func(granted locktable.Instant, e locktable.Entry) []byte {
		e.Fence = uint64(granted)
		return e.Append(nil)
	}
	holder := locktable.Holder{Fence: uint64(now.Add(-2 * time.Hour)), Expires: now.Add(time.Hour)}
	holder.Token, holder.Weight = driver.NewToken(), driver.Exclusive
	held := locktable.Entry{Holders: []locktable.Holder{holder}}
	rows := []swap.Named{
		{Name: "old", Now: now, Stored: swap.Stored{Value: entry(now.Add(-2*time.Hour), locktable.Entry{})}},
		{Name: "young", Now: now, Stored: swap.Stored{Value: entry(now.Add(-time.Minute), locktable.Entry{})}},
		{Name: "held", Now: now, Stored: swap.Stored{Value: entry(now.Add(-2*time.Hour), held)}},
		{Name: "damaged", Now: now, Stored: swap.Stored{Value: []byte{0}}},
	}
	if old := Forgettable(rows, time.Hour); len(old) != 1 || old[0].Name != "old" {
		t.Errorf("Forgettable returns %+v, want only the row old", old)
	}
}
