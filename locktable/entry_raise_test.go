package locktable_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
)

// All laws hold for all other operations, though fences are raised in between.
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
