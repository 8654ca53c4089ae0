package check

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// fences finds grants of a name with the same fence, and fences that fall: a claim asked
// for after a grant must get a greater fence than that grant.
func (w *world) fences(n *name) {
	if !w.Run.Fenced {
		return
	}
	var a *history.Claim // the claim before b, by fence
	for _, b := range slices.SortedStableFunc(slices.Values(n.granted), func(a, b *history.Claim) int { return cmp.Compare(a.Fence, b.Fence) }) {
		if a != nil && a.Fence == b.Fence {
			w.add(Violation{Rule: FenceTwice, Name: n.Name, From: a.Got, To: b.Got, Claims: ids(a, b)},
				"%s got %q at %s, and %s got it at %s. Both have the fence %d.",
				upper{a}, n.Name, at(a.Got), who{b}, at(b.Got), a.Fence)
		}
		a = b
	}
	var greatest *history.Claim // has the greatest fence of the grants before c was asked for
	granted := n.granted
	for _, c := range n.claims {
		for ; len(granted) > 0 && granted[0].Got < c.Asked; granted = granted[1:] {
			if greatest == nil || granted[0].Fence > greatest.Fence {
				greatest = granted[0]
			}
		}
		if c.Answer == history.Granted && greatest != nil && greatest.Fence > c.Fence {
			w.add(Violation{Rule: FenceFalls, Name: n.Name, From: greatest.Got, To: c.Got, Claims: ids(greatest, c)},
				"%s got %q at %s with the fence %d. %s asked for it after that, at %s, and got the smaller fence %d.",
				upper{greatest}, n.Name, at(greatest.Got), greatest.Fence, upper{c}, at(c.Asked), c.Fence)
		}
	}
}
