package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// fences finds grants of a name with the same fence, and fences that fall: a claim that
// was asked for after another grant must have the greater fence.
func (w *world) fences(n *name) {
	if !w.run.Fenced {
		return
	}
	w.fencesTwice(n)
	w.fencesFall(n)
}

func (w *world) fencesTwice(n *name) {
	byFence := slices.Clone(n.granted)
	slices.SortStableFunc(byFence, func(a, b *history.Claim) int { return cmp.Compare(a.Fence, b.Fence) })
	for i, b := range byFence {
		if i == 0 || byFence[i-1].Fence != b.Fence || w.full(FenceTwice, n.Name.Name) {
			continue
		}
		a := byFence[i-1]
		w.add(Violation{
			Rule: FenceTwice, Name: n.Name.Name, From: a.Got, To: b.Got, Claims: ids(a, b),
			Text: fmt.Sprintf("%s got %q at %s, and %s got it at %s. Both have the fence %d.",
				upper(a), n.Name.Name, at(a.Got), who(b), at(b.Got), a.Fence),
		})
	}
}

func (w *world) fencesFall(n *name) {
	var greatest *history.Claim // the claim with the greatest fence among the grants before c was asked for
	next := 0
	for _, c := range n.claims {
		for ; next < len(n.granted) && n.granted[next].Got < c.Asked; next++ {
			if g := n.granted[next]; greatest == nil || g.Fence > greatest.Fence {
				greatest = g
			}
		}
		if c.Answer != history.Granted || greatest == nil || greatest.Fence <= c.Fence || w.full(FenceFalls, n.Name.Name) {
			continue
		}
		w.add(Violation{
			Rule: FenceFalls, Name: n.Name.Name, From: greatest.Got, To: c.Got, Claims: ids(greatest, c),
			Text: fmt.Sprintf("%s got %q at %s with the fence %d. %s asked for it after that, at %s, and got the smaller fence %d.",
				upper(greatest), n.Name.Name, at(greatest.Got), greatest.Fence, upper(c), at(c.Asked), c.Fence),
		})
	}
}
