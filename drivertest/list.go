package drivertest

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

func testList(s *suite) {
	s.test("YieldsNamesInUseInByteOrder", func(k *kit) {
		for _, suffix := range []string{"/b", "/a", "/Z", "/\u00e9", "/a/1", "/~", "/a b", "/A"} {
			k.a.wantGranted(k.mutex(named(k.name + suffix)))
		}
		done := k.mutex(named(k.name + "/released"))
		k.a.wantGranted(done)
		k.a.mustRelease(done) // List does not show a name with only a fence
		k.b.entry(k.name + "/read")
		k.wantNames(k.name, "/A", "/Z", "/a", "/a b", "/a/1", "/b", "/~", "/\u00e9")
	})

	if s.canBreak {
		s.test("YieldsAClosedName", func(k *kit) {
			g := k.a.wantGranted(k.mutex())
			k.b.mustBreak(g.Fence, long, driver.Owner{})
			k.wantNames(k.name, "")
		})
	}

	s.test("YieldsANameInItsMinimumHold", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, long)
		k.wantNames(k.name, "")
	})

	s.test("LeavesOutExpiredNames", func(k *kit) {
		k.a.wantGranted(k.mutex(named(k.name+"/dead"), ttl(k.unit)))
		k.a.wantGranted(k.mutex(named(k.name + "/alive")))
		k.advancePast(k.unit)
		k.wantNames(k.name, "/alive")
	})

	s.test("TakesThePrefixLiterally", func(k *kit) {
		suffixes := []string{
			"%1", "_1", "*1", "?1", "[a]1", "\\1", "'1", "{a}1", "^1", "$1", "a1", "A1", ".1", "\u00e91", "e\u03011", "\"1", "\\%1", "\U0001f5121",
		}
		for _, suffix := range suffixes {
			k.a.wantGranted(k.mutex(named(k.name + suffix)))
		}
		for _, suffix := range suffixes {
			prefix := strings.TrimSuffix(suffix, "1")
			var want []string
			for _, s := range suffixes {
				if rest, ok := strings.CutPrefix(s, prefix); ok {
					want = append(want, rest)
				}
			}
			slices.Sort(want)
			k.wantNames(k.name+prefix, want...)
		}
	})

	s.test("APrefixEndsWhereTheNextBegins", func(k *kit) {
		// A range of an index may end at the prefix with its last byte increased. That
		// fails at 0xff and at the last code points.
		for _, suffix := range []string{"a", "a\U0010ffff", "a\U0010ffffz", "b", "a\u007e", "a\u00ff"} {
			k.a.wantGranted(k.mutex(named(k.name + suffix)))
		}
		k.wantNames(k.name+"a", "", "~", "\u00ff", "\U0010ffff", "\U0010ffffz")
		k.wantNames(k.name+"a\U0010ffff", "", "z")
		k.wantNames(k.name+"b", "")
		k.wantNames(k.name + "c")
	})

	s.test("APrefixMayEndInsideACharacter", func(k *kit) {
		for _, suffix := range []string{"\u00e9", "\u00ff", "\u0100", "b", "\u65e5\u672c"} {
			k.a.wantGranted(k.mutex(named(k.name + suffix)))
		}
		k.wantNames(k.name+"\xc3", "\xa9", "\xbf")
		k.wantNames(k.name+"\xe6\x97", "\xa5\u672c")
		k.wantNames(k.name+"\u65e5\xe6", "\x9c\xac")
		k.wantNames(k.name + "\xc4\x80\x80")
		k.wantNames(k.name + "\xff")
	})

	s.test("AWholeNameIsAPrefixOfItself", func(k *kit) {
		k.a.wantGranted(k.mutex())
		k.a.wantGranted(k.mutex(named(k.name + "0")))
		k.wantNames(k.name, "", "0")
		k.wantNames(k.name+"0", "")
	})

	s.test("AnEmptyPrefixIsEverything", func(k *kit) {
		k.a.wantGranted(k.mutex())
		if !slices.Contains(k.list(""), k.name) {
			k.Errorf("List(\"\") has no %q", k.name)
		}
	})

	s.test("MayBeLeftEarly", func(k *kit) {
		for i := range 5 {
			k.a.wantGranted(k.mutex(named(k.nthName(i))))
		}
		seen := 0
		for _, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
			if err != nil {
				k.Fatal(err)
			}
			if seen++; seen == 2 {
				break
			}
		}
		k.b.wantGranted(k.mutex(named(k.nthName(0)), force)) // a listing that was left early must lock nothing
	})

	s.test("MayBeUsedWhileItRuns", func(k *kit) {
		var claims []driver.Claim
		for i := range 5 {
			c := k.mutex(named(k.nthName(i)))
			k.a.wantGranted(c)
			claims = append(claims, c)
		}
		for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
			if err != nil {
				k.Fatal(err)
			}
			for _, c := range claims {
				if c.Name == e.Name {
					k.b.mustRelease(c)
				}
			}
		}
		k.wantNames(k.name)
	})

	s.test("YieldsTheSameAsInspect", func(k *kit) {
		k.a.wantGranted(k.mutex(owner(driver.Owner{Client: "c", Labels: map[string]string{"a": "b"}})))
		k.b.wantPlace(k.mutex(queue(long)), 1)
		want := k.b.wantHoldersWaiters(1, 1)
		for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
			if err != nil {
				k.Fatal(err)
			}
			if e.Fence != want.Fence || len(e.Holders) != 1 || len(e.Waiters) != 1 || !e.Holders[0].Owner.Equal(want.Holders[0].Owner) {
				k.Errorf("List = %+v\nInspect = %+v", e, want)
			}
		}
	})

	s.test("ManyNamesComeOnceEach", func(k *kit) {
		n := s.fewerIfFar(300) // more than one page of most backends
		var want []string
		for i := range n {
			k.a.wantGranted(k.mutex(named(k.nthName(i))))
			want = append(want, strings.TrimPrefix(k.nthName(i), k.name))
		}
		k.wantNames(k.name, want...)
	})
}

// wantNames requires that List yields exactly prefix plus each suffix, in this order.
func (k *kit) wantNames(prefix string, suffixes ...string) {
	k.Helper()
	var want []string
	for _, s := range suffixes {
		want = append(want, prefix+s)
	}
	if got := k.list(prefix); !slices.Equal(got, want) {
		k.Fatalf("List(%+q):\n%swant:\n%s", prefix, quoted(got), quoted(want))
	}
}
