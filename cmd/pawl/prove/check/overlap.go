package check

import (
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// overlap finds holders that exclude each other, and that were sure of it at one time. A
// holder is sure from Got to Believed: it may have been right for longer, but it was not
// sure.
func (w *world) overlap(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		if !wasSure(c) {
			continue
		}
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Believed <= c.Got })
		if n.against(holders, c) != nil {
			w.overlapped(n, holders, c)
		}
		holders = append(holders, c)
	}
}

// overlapped reports a holder that does not fit beside the others, except where the
// server was allowed to forget one of them.
func (w *world) overlapped(n *name, holders []*history.Claim, c *history.Claim) {
	no := n.against(slices.DeleteFunc(slices.Clone(holders), func(h *history.Claim) bool { return w.forgot(h, c.Got) }), c)
	if no == nil {
		w.Announced++
		return
	}
	weight, until := c.Weight, int64(0)
	for _, h := range no {
		weight, until = weight+h.Weight, max(until, h.Believed)
	}
	until = min(until, c.Believed)
	text := "%s got %q at %s and was sure of it until %s. At the same time %s was sure to hold it, for %s."
	args := []any{upper{c}, n.Name, at(c.Got), at(c.Believed), list(no), length(until - c.Got)}
	if c.Mode == history.Permits {
		text, args = text+" That makes %d permits of %d.", append(args, weight, n.Limit)
	}
	w.add(Violation{Rule: Overlap, Name: n.Name, From: c.Got, To: until, Claims: append(ids(no...), c.ID)}, text, args...)
}
