package drivertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// lookalikes are names that some collation, pattern, path, hash tag, escaping or
// normalisation confuses with each other. X stands for the kit's name.
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
	"Xnull", "XNULL", "X:queue", "X:fence", "X/holders", "pawl:X", "semaphore:X", // possible keys of backends
}

// lookalike returns the name for a pattern of lookalikes.
func (k *kit) lookalike(pattern string) string {
	if pattern == "x" {
		return strings.ToLower(k.name) + "/" // the slash distinguishes it from other subtests' names
	}
	return strings.Replace(pattern, "X", k.name, 1)
}

func testNames(s *suite) {
	s.timeless = true
	s.test("AreComparedByteForByte", func(k *kit) {
		// One claim holds each name, and another waits for it. So a request that reaches
		// the wrong name finds another owner, and not its token. The order is random, so
		// each name is freed before some of its lookalikes, and after others.
		var held, waiting []driver.Claim
		var listed []string
		for i, at := range rand.Perm(len(lookalikes)) { // only lookalikes are held
			c := k.mutex(named(k.lookalike(lookalikes[at])), owner(driver.Owner{Client: "drivertest", PID: i + 1}))
			w := k.mutex(named(c.Name), owner(c.Owner), queue(long)) // the place must not be confused, either
			k.a.wantGranted(c)
			if refused := k.b.wantPlace(w, 1); refused.Holders != 1 || refused.Holder.Owner.PID != c.Owner.PID {
				k.Errorf("%+q has %d holders, the first %+v; want one with the PID %d", c.Name, refused.Holders, refused.Holder, c.Owner.PID)
			}
			held, waiting = append(held, c), append(waiting, w)
			if strings.HasPrefix(c.Name, k.name) {
				listed = append(listed, c.Name)
			}
		}
		slices.Sort(listed)
		if s.canList && !slices.Equal(k.list(k.name), listed) {
			k.Errorf("List in byte order:\n%s\nwant:\n%s", quoted(k.list(k.name)), quoted(listed))
		}

		free := func(from, to int) {
			for _, c := range held[from:to] {
				k.b.mustRelease(c)
			}
			var leases []driver.LeaseRef
			for _, c := range slices.Concat(waiting[from:to], held[to:]) {
				leases = append(leases, lease(c))
			}
			if err := errors.Join(k.a.renewAll(leases...)...); err != nil {
				k.Errorf("Renew: %v; want all of them held", err)
			}
			for _, c := range waiting[from:to] {
				k.a.mustRelease(c)
			}
		}
		half := len(held) / 2
		free(0, half)
		for i, c := range held {
			e := k.b.entry(c.Name)
			asExpected := len(e.Holders)+len(e.Waiters) == 0
			if i >= half {
				asExpected = len(e.Holders) == 1 && len(e.Waiters) == 1 && e.Holders[0].Owner.PID == c.Owner.PID
			}
			if !asExpected || e.Name != c.Name {
				k.Errorf("Inspect(%+q) = %+v; %d of %d names are free", c.Name, e, half, len(held))
			}
		}
		free(half, len(held))
		if s.canList {
			k.wantNames(k.name)
		}
	})

	s.test("AreTheSameForAllKindsOfLocks", func(k *kit) {
		// These are a semaphore, and mutexes on names that some backend might use as keys
		// for it.
		k.a.wantGranted(k.permits(1, 2))
		k.a.wantGranted(k.permits(1, 2))
		k.a.wantPlace(k.permits(1, 2, queue(long)), 1)
		for _, like := range []string{"semaphore:X", "X:semaphore", "sem:X", "rw:X", "X:2", "X:1", "X:holders", "X:waiters", "X:permits"} {
			k.b.wantGranted(k.mutex(named(k.lookalike(like))))
		}
		k.b.wantHeld(k.mutex())
		k.b.wantHoldersWaiters(2, 1)
	})

	s.test("MayHave255Bytes", func(k *kit) {
		padded := func(pad, end string) string {
			room := driver.MaxName - len(k.name) - len(end)
			return k.name + strings.Repeat("a", room%len(pad)) + strings.Repeat(pad, room/len(pad)) + end
		}
		for _, pad := range []string{"x", "\u00e9", "\u20ac", "\U0001f512", "'", "{", "\\"} {
			one, two := k.mutex(named(padded(pad, "1"))), k.mutex(named(padded(pad, "2")))
			k.a.wantGranted(one) // the names differ only in their last byte
			k.a.wantGranted(two)
			k.b.wantHeld(k.mutex(named(one.Name)))
			k.b.mustRelease(two)
			k.b.mustRenew(one)
			if e := k.b.entry(one.Name); e.Name != one.Name {
				k.Errorf("Entry.Name = %+q, want %+q", e.Name, one.Name)
			}
		}
	})

	s.test("MayHaveOneByte", func(k *kit) {
		// All users of the server share these names, so the test only reads them.
		for _, name := range []string{"a", "'", "%", "*", "{", "}", "\\", "\"", "?", "0", " "} {
			if _, err := k.a.Inspect(k.ctx, name); err != nil {
				k.Errorf("Inspect(%q): %v", name, err)
			}
		}
	})

	s.test("AppearUnchangedInErrors", func(k *kit) {
		c := k.mutex(named(k.name + " caf\u00e9 {x} '\\"))
		k.a.wantGranted(c)
		if held := k.b.wantHeld(k.mutex(named(c.Name))); held.Name != c.Name {
			k.Errorf("HeldError.Name = %q, want %q", held.Name, c.Name)
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
