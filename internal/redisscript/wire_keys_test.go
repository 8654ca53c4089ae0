package redisscript

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// hashSlot returns the slot of a key by the rule of the cluster specification: the hash
// of the part between the first { and the first } after it, unless that is empty.
func hashSlot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return crc16(key) % slotCount
}

func TestCRC16IsTheOneOfTheSpecification(t *testing.T) {
	if got := crc16("123456789"); got != 0x31c3 {
		t.Errorf("%#x, want 0x31c3", got)
	}
}

// specialNames makes names of the characters of hash tags, escapes and patterns.
func specialNames(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"{", "}", "%", "25", "7B", "7D", "a", "b", "*", "?", "[", "]", "\\", "s", " ", ":", "\u00e9"}
	seen := map[string]bool{}
	var names []string
	for len(names) < n {
		name := ""
		for range 1 + random.IntN(12) {
			name += alphabet[random.IntN(len(alphabet))]
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

func TestAllKeysOfANameAreInOneSlotAndNoTwoNamesShareAKey(t *testing.T) {
	owners := map[string]string{}
	for _, name := range specialNames(10_000) {
		keys := (&Options{Prefix: "pawl:"}).call(name).Keys
		for _, key := range keys {
			if hashSlot(key) != slot(name) {
				t.Fatalf("%q of %q is in slot %d, not in %d", key, name, hashSlot(key), slot(name))
			}
			if other, dup := owners[key]; dup {
				t.Fatalf("%q belongs to %q and to %q", key, name, other)
			}
			owners[key] = name
		}
		if back, ok := nameOf("pawl:", keys[0]); !ok || back != name {
			t.Fatalf("%q is decoded as %q", name, back)
		}
	}
}

func TestEachSlotHasATagOfItsOwn(t *testing.T) {
	for slot, tag := range slotTags() {
		if channel := "pawl:{" + tag + "}inbox:0"; tag == "" || hashSlot(channel) != uint16(slot) {
			t.Fatalf("%q is in slot %d, not in %d", channel, hashSlot(channel), slot)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("h")
	f.Add("h" + strings.Repeat("\x00", 40) + "\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = readEntry(s, "name")
		_, _ = readRefusal(s, "name")
		_, _ = readSignal(s)
		_ = readEnd(Reply{Text: s})
		_, _ = readGrant(Reply{Text: s}, &driver.Claim{Weight: driver.Exclusive, Fences: 1})
	})
}
