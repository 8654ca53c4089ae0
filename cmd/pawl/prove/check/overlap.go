package check

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// overlap finds holders that exclude each other, and that were sure of it at one time. A
// holder is sure from Got to Believed: it may have been right for longer, but it was not
// sure.
func (w *world) overlap(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		if !sure(c) {
			continue
		}
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Believed <= c.Got })
		if no := n.against(holders, c); no != nil {
			w.overlapped(n, holders, c)
		}
		holders = append(holders, c)
	}
}

// overlapped reports a holder that does not fit beside the others, except where the
// server was allowed to forget one of them.
func (w *world) overlapped(n *name, holders []*history.Claim, c *history.Claim) {
	kept := make([]*history.Claim, 0, len(holders))
	for _, h := range holders {
		if !w.forgot(h, c.Got) {
			kept = append(kept, h)
		}
	}
	no := n.against(kept, c)
	switch {
	case no == nil:
		w.announced++
		return
	case w.full(Overlap, n.Name.Name):
		return
	}
	until := no[0].Believed
	for _, h := range no {
		until = max(until, h.Believed)
	}
	until = min(until, c.Believed)
	text := fmt.Sprintf("%s got %q at %s and was sure of it until %s. At the same time %s was sure to hold it, for %s.",
		upper(c), n.Name.Name, at(c.Got), at(c.Believed), list(no), length(until-c.Got))
	if c.Mode == history.Permits {
		sum := c.Weight
		for _, h := range no {
			sum += h.Weight
		}
		text += fmt.Sprintf(" That makes %d permits of %d.", sum, n.Limit)
	}
	w.add(Violation{
		Rule: Overlap, Name: n.Name.Name, Text: text, From: c.Got, To: until,
		Claims: append(ids(no...), c.ID),
	})
}
