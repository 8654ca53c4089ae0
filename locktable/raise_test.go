package locktable_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
)

// raise runs Raise, and checks what is true of it whatever happens: the lease is the last one granted if its fence
// rose, and nothing else of it is changed.
func (l *lab) raise(who string, fence uint64) (uint64, error) {
	l.t.Helper()
	before := clone(l.e)
	got, err := l.e.Raise(l.now, &driver.LeaseRef{Name: "job", Token: tokenOf(who)}, fence)
	l.checkState()
	l.checkStored(before)
	h := l.holder(tokenOf(who))
	switch {
	case errors.Is(err, driver.ErrNotHeld) != (h == nil):
		l.t.Fatalf("raising the fence of %s is answered %v, and its lease is %+v", who, err, h)
	case l.e.Fence < before.Fence:
		l.t.Fatalf("the last fence fell from %d to %d", before.Fence, l.e.Fence)
	case err != nil:
		l.top = max(l.top, l.e.Fence)
		return got, err
	case h.Fence != got || got < fence:
		l.t.Fatalf("%s was told the fence %d for %d, and has %d", who, got, fence, h.Fence)
	}
	for _, o := range before.Holders {
		if o.Token != h.Token || o.Fence == got {
			continue
		}
		if got <= before.Fence && got != o.Fence && o.Fence+uint64(o.Fences)-1 != before.Fence {
			l.t.Fatalf("the fence of %s was raised to %d, after %d", who, got, before.Fence)
		}
		if l.e.Fence != got+uint64(h.Fences)-1 {
			l.t.Fatalf("%d is the last fence, and %s was raised to %d, %d in a row", l.e.Fence, who, got, h.Fences)
		}
		if o.Fence = got; o.Expires != h.Expires || o.Fences != h.Fences || o.Since != h.Since {
			l.t.Fatalf("raising its fence made %+v of %+v", *h, o)
		}
	}
	l.top = max(l.top, l.e.Fence)
	return got, nil
}

// All laws hold for everything else that happens, though fences are raised in between.
func TestLawsHoldThoughFencesAreRaised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			if o := l.next(choose, false); choose("raise", 4) == 0 {
				_, _ = l.raise(pick(choose, "who", clients...), max(1, l.e.Fence+uint64(choose("by", 5))-2))
			} else {
				l.do(o)
			}
		}
	})
}

func TestRaise(t *testing.T) {
	each(t, map[string]func(l *lab){
		"BringsTheNextFenceAboveIt": func(l *lab) {
			g := l.granted(mutex("a"))
			got, err := l.raise("a", g.Fence+7)
			l.ok(err)
			equal(l.t, "raised", got, g.Fence+7)
			l.ok(l.release("a", 0))
			equal(l.t, "next", l.granted(mutex("b")).Fence, g.Fence+8)
		},
		"WithinItsOwnRunMovesTheRun": func(l *lab) {
			g := l.granted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 10 }))
			got, err := l.raise("a", g.Fence+3)
			l.ok(err)
			equal(l.t, "raised", got, g.Fence+3)
			equal(l.t, "last", l.e.Fence, g.Fence+12)
		},
		"PassesThoseWhoCameSince": func(l *lab) {
			a, b := l.granted(reader("a")), l.granted(reader("b"))
			got, err := l.raise("a", a.Fence+1)
			l.ok(err)
			equal(l.t, "raised", got, b.Fence+1)
			l.state("b a |")
		},
		"IsRefusedIfThoseLeaveNoRoom": func(l *lab) {
			a := l.granted(permits("a", 1, 2))
			l.granted(permits("b", 1, 3))
			c := l.granted(permits("c", 1, 3))
			if _, err := l.raise("a", c.Fence+1); !errors.Is(err, driver.ErrHeld) {
				l.t.Fatalf("error %v, want ErrHeld", err)
			}
			equal(l.t, "fence", l.e.Holders[0].Fence, a.Fence)
		},
	})
}
