package drivertest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// lookalikes are names that some collation, pattern, path, hash tag, escaping or
// normalisation confuses with each other. X stands for the part that makes them unique to
// this run.
var lookalikes = []string{
	"X", "x", "X ", " X", "X\u00a0", "X.", "X/", "X//", "/X", "X/.", "X/..", "X:", "X-", "X\\", "X\\\\",
	"Xjob", "XJob", "XJOB", "Xjob ", // case, and trailing space
	"Xcaf\u00e9", "Xcafe\u0301", "Xcafe", "Xcaf\u00c9", // NFC, NFD, without, upper case
	"Xss", "X\u00df", "X\u1e9e", "XSS", // sharp s
	// Kelvin, dotless, ligature, full width
	"Xk", "X\u212a", "Xi", "X\u0131", "X\u0130", "X\ufb01", "Xfi", "X\uff41", "Xa",
	"Xa\u200db", "Xab", "Xa\ufeffb", "X\u202eab", // zero width, and right to left
	"X\U0001f512", "X\U0001f513", "X\U0001f468\u200d\U0001f469", // above the basic plane
	"X{a}", "{X}a", "{X", "X}", "{}X", "X{}", "}X{", "{{X}}", "X{a}{b}", "X{a}{c}", // hash tags
	"X*", "X?", "X[a]", "X[^a]", "X%", "X_", "X%25", "X+", "X%20", // patterns and escapes
	// SQL
	"X'", "X''", "X'; DROP TABLE pawl; --", "X\"", "X`", "X$1", "X:x", "X?1", "X--", "X#", "X;", "X|", "X&", "X<>", "X\\0", "X\\x00",
	"X0", "X00", "X1e0", "X1", "0X", "X\u0661", // numbers
	"Xnull", "XNULL", "X:queue", "X:fence", "X/holders", "pawl:X", "semaphore:X", // our own keys, perhaps
}

// lookalike makes the kit's own name from a pattern, with room left for short ones.
func (k *kit) lookalike(pattern string) string {
	if pattern == "x" {
		return strings.ToLower(k.name) + "/" // so that it is not in the way of the others
	}
	return strings.Replace(pattern, "X", k.name, 1)
}

func testNames(s *suite) {
	s.timeless = true
	s.test("AreComparedByteForByte", func(k *kit) {
		held := map[string]driver.Claim{}
		for _, pattern := range lookalikes {
			c := k.mutex(on(k.lookalike(pattern)))
			if _, err := k.a.Acquire(k.ctx, c); err != nil {
				k.Errorf("%+q: %v; want it granted, for only others like it are held", c.Name, err)
				continue
			}
			held[c.Name] = c
		}
		if len(held) != len(lookalikes) {
			k.Fatalf("%d of %d names were granted", len(held), len(lookalikes))
		}
		waiting := map[string]driver.Claim{}
		for name := range held { // the records of the waiters must not be confused, either
			c := k.mutex(on(name), queue(long))
			if refused := k.b.refused(c); refused.Position != 1 || refused.Holders != 1 {
				k.Errorf("%+q has %d holders, and the first who waits for it has the place %d", name, refused.Holders, refused.Position)
			}
			waiting[name] = c
		}
		for name, c := range held {
			if e := k.b.entry(name); e.Name != name || len(e.Holders) != 1 || len(e.Waiters) != 1 {
				k.Errorf("Entry(%+q) = %+q with %d holders and %d waiters", name, e.Name, len(e.Holders), len(e.Waiters))
			}
			k.a.keeps(c)
		}
		for name, c := range held {
			k.b.releases(c)
			k.a.keeps(waiting[name])
			k.a.releases(waiting[name])
			delete(held, name)
			if e := k.a.entry(name); len(e.Holders)+len(e.Waiters) != 0 {
				k.Errorf("%+q is held after its release", name)
			}
			for _, other := range held { // one is enough: map order picks another each time
				k.a.keeps(other)
				break
			}
		}
	})

	s.test("OfAllKindsAreTheSameNames", func(k *kit) {
		// A semaphore on x, and a mutex on a name that some backend might use as a key
		// for it.
		k.a.gets(k.permits(1, 2))
		k.a.gets(k.permits(1, 2))
		k.a.waits(k.permits(1, 2, queue(long)), 1)
		for _, like := range []string{"semaphore:X", "X:semaphore", "sem:X", "rw:X", "X:2", "X:1", "X:holders", "X:waiters", "X:permits"} {
			k.b.gets(k.mutex(on(k.lookalike(like))))
		}
		k.b.refused(k.mutex())
		k.b.sees(2, 1)
	})

	s.test("MayHave255Bytes", func(k *kit) {
		full := func(pad, end string) string {
			room := driver.MaxName - len(k.name) - len(end)
			return k.name + strings.Repeat("a", room%len(pad)) + strings.Repeat(pad, room/len(pad)) + end
		}
		for _, pad := range []string{"x", "\u00e9", "\u20ac", "\U0001f512", "'", "{", "\\"} {
			one, two := k.mutex(on(full(pad, "1"))), k.mutex(on(full(pad, "2")))
			k.a.gets(one) // they differ in the last byte only
			k.a.gets(two)
			k.b.refused(k.mutex(on(one.Name)))
			k.b.releases(two)
			k.b.keeps(one)
			if e := k.b.entry(one.Name); e.Name != one.Name {
				k.Errorf("Entry.Name = %+q, want %+q", e.Name, one.Name)
			}
		}
	})

	s.test("OfOneByteAreFine", func(k *kit) {
		// All users of the server share these names, so the test only wants an answer.
		for _, name := range []string{"a", "'", "%", "*", "{", "}", "\\", "\"", "?", "0", " "} {
			if _, err := k.a.Inspect(k.ctx, name); err != nil {
				k.Errorf("Entry(%q): %v", name, err)
			}
		}
	})

	s.test("StandInErrorsAndEntriesAsTheyAre", func(k *kit) {
		c := k.mutex(on(k.name + " caf\u00e9 {x} '\\"))
		k.a.gets(c)
		if held := k.b.refused(k.mutex(on(c.Name))); held.Name != c.Name {
			k.Errorf("HeldError.Name = %q, want %q", held.Name, c.Name)
		}
	})

	if !s.lists {
		return
	}
	s.test("AreListedAsTheyAre", func(k *kit) {
		var want []string
		for _, pattern := range lookalikes {
			if name := k.lookalike(pattern); strings.HasPrefix(name, k.name) {
				k.a.gets(k.mutex(on(name)))
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := k.list(k.name); !slices.Equal(got, want) {
			k.Errorf("List in byte order:\n%s\nwant:\n%s", quoted(got), quoted(want))
		}
	})
}

func quoted(names []string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "  %+q\n", n)
	}
	return b.String()
}
