package stamped_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

func envelope() *stamped.Envelope {
	return &stamped.Envelope{
		Window: swap.Window{From: 1000, To: 2000},
		Value:  []byte("new"), Previous: []byte("old"), VoidVersions: []uint64{7, 300},
	}
}

// Other versions read the stored form, so it must not change by accident.
func TestTheStoredFormDoesNotChange(t *testing.T) {
	const golden = "\xe1\xd0\x0f\xa0\x1f\x02\x07\xac\x02\x03newold"
	if got := string(envelope().Append(nil)); got != golden {
		t.Errorf("stored as %q, want %q", got, golden)
	}
	if e, err := stamped.Decode([]byte(golden)); err != nil || !reflect.DeepEqual(e, envelope()) {
		t.Errorf("read as %+v, %v", e, err)
	}
}

func TestASwapCountsIfItsStampIsInItsWindow(t *testing.T) {
	e := envelope()
	for stamp, want := range map[locktable.Instant]string{
		0: "old", 999: "old", 1000: "new", 1500: "new", 2000: "new", 2001: "old", 1 << 52: "old",
	} {
		if got := string(e.ValueAt(stamp)); got != want || e.InsideWindow(stamp) != (want == "new") {
			t.Errorf("stored at %d it is %q; want %q", stamp, got, want)
		}
	}
}

func TestAnEnvelopeListsVoidSwapsBeforeIt(t *testing.T) {
	e := envelope()
	next := func(version uint64, stamp locktable.Instant) {
		void := e.VoidAt(version, stamp)
		e = stamped.Next(swap.Swap{Window: e.Window, Value: []byte("newer"), Previous: e.ValueAt(stamp)}, void)
	}
	next(400, 1500) // counts
	next(401, 2500) // does not
	next(402, 1500)
	for version, want := range map[uint64]bool{300: false, 399: true, 400: true, 401: false, 402: true} {
		if counted, known := e.Counted(version); counted != want || !known {
			t.Errorf("%d counted: %v (known: %v); want %v", version, counted, known, want)
		}
	}
	for i := range uint64(100) {
		next(500+i, 2500)
	}
	for version, want := range map[uint64]bool{300: false, 500: false, 599: true, 601: true} {
		if _, known := e.Counted(version); known != want {
			t.Errorf("Counted(%d) knows the answer: %v; want %v", version, known, want)
		}
	}
	if _, err := stamped.Decode(e.Append(nil)); err != nil {
		t.Errorf("after 100 void swaps: %v", err)
	}
}

func TestTwoNextEnvelopesDoNotShareAnArray(t *testing.T) {
	e := envelope()
	e.VoidVersions = append(make([]uint64, 0, 8), 7)
	one, other := e.VoidAt(8, 0), e.VoidAt(9, 0)
	if !slices.Equal(one, []uint64{7, 8}) || !slices.Equal(other, []uint64{7, 9}) {
		t.Errorf("VoidAt returns %v and %v; want [7 8] and [7 9]", one, other)
	}
}

func TestDecodeRefusesDamagedBytes(t *testing.T) {
	whole := envelope().Append(nil)
	whole = whole[:len(whole)-len("old")]
	for i := range whole {
		if _, err := stamped.Decode(whole[:i]); !isCorrupt(err) {
			t.Errorf("the first %d bytes: %v, want a *CorruptError", i, err)
		}
	}
	for _, bad := range []string{"x", "\xe1\x80\x00\x00\x00\x00", "\xe1\x00\x00\x21", "\xe1\x00\x00\x00\x05new"} {
		if _, err := stamped.Decode([]byte(bad)); !isCorrupt(err) {
			t.Errorf("%q: %v, want a *CorruptError", bad, err)
		}
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*locktable.CorruptError](err)
	return ok
}

func FuzzDecode(f *testing.F) {
	f.Add(envelope().Append(nil), int64(1500))
	f.Add((&stamped.Envelope{}).Append(nil), int64(0))
	f.Fuzz(func(t *testing.T, stored []byte, stamp int64) {
		e, err := stamped.Decode(stored)
		if err != nil {
			if !isCorrupt(err) {
				t.Fatalf("Decode: %v, want a *CorruptError", err)
			}
			return
		}
		if got := e.Append(nil); string(got) != string(stored) {
			t.Fatalf("%q is stored as %q", stored, got)
		}
		e.ValueAt(locktable.Instant(stamp))
		next := &stamped.Envelope{VoidVersions: e.VoidAt(1<<63, locktable.Instant(stamp))}
		if _, err := stamped.Decode(next.Append(nil)); err != nil {
			t.Fatalf("the next envelope: %v", err)
		}
	})
}
