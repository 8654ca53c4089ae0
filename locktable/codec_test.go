package locktable_test

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/locktable"
)

// Other versions and languages read the stored form, so it must not change by accident.
func TestTheStoredFormDoesNotChange(t *testing.T) {
	const golden = version + "\xac\x02\x0e" + // fence, closed
		"\x01hold" + zeros + "\x02in" + "\xc3\x0a\x02\x01a\x011\x01b\x012\x01c\x01h" + // a holder: its claim,
		// fences, weight, limit, delay, TTL, fence, since, expires
		"\xc8\x01\xfe\xff\xff\xff\x0f\xfe\xff\xff\xff\x0f\x06\x08" + "\xc9\x01\x02\x04" + "\x01" +
		// a waiter, and no Overflow
		"\x01wait" + zeros + "\x03out" + "\x00" + "\x02\x04\x08\x0c\x0e" + "\x01\x12" + "\x02v\x01" + "\x00" +
		"\x01gone" + zeros + "\x01\x04boss" + "\x16" + // a broken lease
		"\x05kept\x96\x01\x18" // the value
	if got := string(fullEntry().Append(nil)); got != golden {
		t.Errorf("stored as %q\nwant      %q", got, golden)
	}
	e, err := locktable.Decode([]byte(golden))
	if err != nil || !reflect.DeepEqual(e, fullEntry()) {
		t.Errorf("decoded to %+v, %v", e, err)
	}
	if got := string((&locktable.Entry{}).Append([]byte("before"))); got != "before"+version+"\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("an empty entry is appended as %q", got)
	}
}

const version = "\xa5"

const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // the rest of a token

func TestTheLargestValuesAreStoredAndRead(t *testing.T) {
	o := basictest.LargestOwner()
	fx := newFixture(t) // the fixture checks that every valid claim can be stored
	fx.now = 1<<53 - 1 - 2*locktable.Instant(driver.MaxTTL/1000)
	fx.wantGranted(with(mutex("a"), func(c *driver.Claim) {
		c.Owner, c.TTL, c.LockDelay, c.Fences = o, driver.MaxTTL, driver.MaxTTL, driver.MaxFences
		c.Value, c.ValueBelow = make([]byte, driver.MaxValue), make([]byte, driver.MaxValue)
	}))
	fx.wantHeld(with(permits("b", driver.Unlimited-1, driver.Unlimited-1), func(c *driver.Claim) {
		c.Owner, c.QueueTTL, c.LockDelay, c.Fences = o, driver.MaxTTL, driver.MaxTTL, driver.MaxFences
		c.Value, c.ValueBelow = make([]byte, driver.MaxValue), bytes.Repeat([]byte{1}, driver.MaxValue)
	}))
	noError(t, fx.entry.Break(fx.now, fx.entry.Fence, driver.MaxTTL, o))
	fx.wantHeld(mutex("c"))
}

func TestATruncatedEntryIsRefused(t *testing.T) {
	stored := fullEntry().Append(nil)
	for n := range stored {
		wantCorrupt(t, stored[:n])
	}
	wantCorrupt(t, nil)
	wantCorrupt(t, append(stored, 0))
}

func TestAnEntryThatBreaksARuleIsRefused(t *testing.T) {
	holder := func(f func(h *locktable.Holder)) func(e *locktable.Entry) {
		return func(e *locktable.Entry) { f(&e.Holders[0]) }
	}
	second := func(h locktable.Holder) func(e *locktable.Entry) {
		return func(e *locktable.Entry) {
			e.Holders[0].Weight, e.Holders[0].Limit, e.Holders[0].Fence, e.Holders[0].Fences = 1, 2, 10, 1
			e.Holders = append(e.Holders, h)
		}
	}
	for want, damage := range map[string]func(e *locktable.Entry){
		"a token occurs twice":                               second(locktable.Holder{ClaimInfo: locktable.ClaimInfo{Token: tokenOf("hold"), Fences: 1, Weight: 1, Limit: 2}, Fence: 11}),
		"fence 10 does not come after 10":                    second(locktable.Holder{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: 1, Limit: 2}, Fence: 10}),
		"fence 9 does not come after 10":                     second(locktable.Holder{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: 1, Limit: 2}, Fence: 9}),
		"the weights add up to 3, and a holder's limit is 2": second(locktable.Holder{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: 2, Limit: 2}, Fence: 11}),
		"weight is 3 of 2":                                   second(locktable.Holder{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: 3, Limit: 2}, Fence: 11}),
		"fence 300 is above the last fence 299":              func(e *locktable.Entry) { e.Fence = 299 },
		"a waiter's token is zero":                           func(e *locktable.Entry) { e.Queue[0].Token = driver.Token{} },
		"or occurs twice":                                    func(e *locktable.Entry) { e.Queue[0].Token = tokenOf("hold") },
		"fence is 4611686018427387905":                       func(e *locktable.Entry) { e.Fence = 1<<62 + 1 },
		"closed is 9007199254740992":                         func(e *locktable.Entry) { e.Closed = 1 << 53 },
		"expiry is 9007199254740992":                         holder(func(h *locktable.Holder) { h.Expires = 1 << 53 }),
		"fence is 0":                                         holder(func(h *locktable.Holder) { h.Fence = 0 }),
		"fences is 0":                                        holder(func(h *locktable.Holder) { h.Fences = 0 }),
		"fences is 65537":                                    holder(func(h *locktable.Holder) { h.Fences = 65537 }),
		"weight is 0":                                        holder(func(h *locktable.Holder) { h.Weight = 0 }),
		"weight is -1":                                       holder(func(h *locktable.Holder) { h.Weight = -1 }),
		"limit is -2":                                        holder(func(h *locktable.Holder) { h.Limit = -2 }),
		"lock-delay is -1":                                   holder(func(h *locktable.Holder) { h.LockDelay = -1 }),
		"TTL is -1":                                          holder(func(h *locktable.Holder) { h.TTL = -1 }),
		"value's fence 301 is above":                         func(e *locktable.Entry) { e.Value.Fence = 301 },
		"value's fence is 0":                                 func(e *locktable.Entry) { e.Value.Fence = 0 },
		"value's time is":                                    func(e *locktable.Entry) { e.Value.At = 1 << 53 },
		"length of a value is 1026":                          func(e *locktable.Entry) { e.Value.Bytes = make([]byte, 1025) },
		"pid is -1":                                          holder(func(h *locktable.Holder) { h.Owner.PID = -1 }),
	} {
		e := fullEntry()
		damage(e)
		if s := wantCorrupt(t, e.Append(nil)); !strings.Contains(s, want) {
			t.Errorf("refused as %s\nwant %s", s, want)
		}
	}
}

// Each entry has one encoding, so that bytes can be compared.
func TestAnotherEncodingOfTheSameEntryIsRefused(t *testing.T) {
	stored := string(fullEntry().Append(nil))
	for from, to := range map[string]string{
		version + "\xac\x02":   version + "\xac\x82\x00", // the fence in three bytes
		"\x0e":                 "\x8e\x00",               // closed in two
		"\x01a\x011\x01b\x012": "\x01b\x012\x01a\x011",
		"\x01b\x012":           "\x01a\x012",
		"\x01\x04boss":         "\x03\x04boss\x00", // a host without a text
		"\xc3\x0a":             "\xc3\x8a\x00",
		version:                "\xa3",
	} {
		wantCorrupt(t, []byte(strings.Replace(stored, from, to, 1)))
	}
}

// A few bytes that announce a million holders cost no memory, and a large damaged row
// costs little more than its size.
func TestADamagedCountCostsNoMemory(t *testing.T) {
	const count = "\xff\xff\x3f" // 1<<20 - 1
	noise := bytes.Repeat([]byte{0xff}, 1<<20)
	for _, head := range []string{version + "\x01\x00" + count, version + "\x01\x00\x00" + count, version + "\x01\x00\x00\x00\x00" + count} {
		for _, b := range [][]byte{[]byte(head), append([]byte(head), noise...)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			wantCorrupt(t, b)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
				t.Errorf("%d bytes that start with %q cost %d bytes", len(b), head, n)
			}
		}
	}
}

// Other stores keep owners outside of entries, with other data behind them.
func TestAnOwnerCanBeStoredOutsideOfAnEntry(t *testing.T) {
	o := basictest.FullOwner()
	b := locktable.AppendOwner(nil, o)
	got, rest, err := locktable.DecodeOwner(append(b, "more"...))
	if err != nil || string(rest) != "more" || !reflect.DeepEqual(got, o) {
		t.Fatalf("decoded to %+v, then %q, %v", got, rest, err)
	}
	for n := range b {
		if _, _, err := locktable.DecodeOwner(b[:n]); !errors.As(err, new(*locktable.CorruptError)) {
			t.Errorf("the first %d bytes: %v, want a CorruptError", n, err)
		}
	}
}

// A later version may store more fields of an owner. This version cannot write them back,
// so it refuses the entry, like an entry of another version.
func TestAnOwnerWithAFieldOfALaterVersionIsRefused(t *testing.T) {
	stored := string(fullEntry().Append(nil))
	later := strings.Replace(stored, "\x01\x04boss", "\x21\x04boss\x03new", 1)
	if s := wantCorrupt(t, []byte(later)); !strings.Contains(s, "written by another version: an owner has the fields 0x21") {
		t.Errorf("refused as %s", s)
	}
}

// A seed must be a valid entry. Decode would refuse another one at once, which would
// prove nothing.
func TestEachSeedOfFuzzDecodeIsAnEntry(t *testing.T) {
	for i, e := range seedEntries(t) {
		if got, err := locktable.Decode(e.Append(nil)); err != nil || !bytes.Equal(got.Append(nil), e.Append(nil)) {
			t.Errorf("seed %d: %s is decoded to %+v, %v", i, entryText(e), got, err)
		}
	}
}

// FuzzDecode decodes any bytes. Decode refuses them with a CorruptError, or returns an
// entry that keeps its rules in all later steps.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil), []byte(nil))
	for _, e := range seedEntries(f) {
		f.Add(e.Append(nil), []byte("\x01\x00\x03\x01\x01\x00\x00\x00\x00\x00\x00\x00\x06\x02\x00"))
	}
	f.Fuzz(func(t *testing.T, stored, ops []byte) {
		e, err := locktable.Decode(stored)
		if c := (*locktable.CorruptError)(nil); err != nil && !errors.As(err, &c) {
			t.Fatalf("error is a %T: %v", err, err)
		}
		if err != nil {
			return
		}
		if again := e.Append(nil); !bytes.Equal(again, stored) {
			t.Fatalf("decoded from %q, stored as %q", stored, again)
		}
		e.Public(start, "job")
		if e.Fence > 1<<61 || len(ops) > 512 {
			return // the fences of the next grants could not be stored
		}
		fx := newFixture(t)
		fx.entry, fx.lastFence = e, e.Fence
		choose, left := byteChooser(ops)
		for {
			if o := fx.drawOp(choose, true); o.kind != "forget" {
				fx.do(o)
			}
			if left() == 0 {
				return
			}
		}
	})
}
