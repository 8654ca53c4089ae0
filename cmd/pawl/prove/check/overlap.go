package check

import (
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// overlap finds holders that exclude each other although both were sure to hold the name
// at the same time. A holder is sure from Got to Believed. Its lease may last longer.
func (w *world) overlap(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		if !wasSure(c) {
			continue
		}
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Believed <= c.Got })
		if n.conflicting(holders, c) != nil {
			w.addOverlap(n, holders, c)
		}
		holders = append(holders, c)
	}
}

// addOverlap reports a holder that conflicts with others, unless the server was allowed
// to forget them.
func (w *world) addOverlap(n *name, holders []*history.Claim, c *history.Claim) {
	conflicts := n.conflicting(slices.DeleteFunc(slices.Clone(holders), func(h *history.Claim) bool { return w.forgot(h, c.Got) }), c)
	if conflicts == nil {
		w.Announced++
		return
	}
	weight, until := c.Weight, int64(0)
	for _, h := range conflicts {
		weight, until = weight+h.Weight, max(until, h.Believed)
	}
	until = min(until, c.Believed)
	text := "%s got %q at %s and was sure to hold it until %s. For %s, %s was sure to hold it, too."
	args := []any{upper{c}, n.Name, at(c.Got), at(c.Believed), length(until - c.Got), list(conflicts)}
	if c.Mode == history.Permits {
		text, args = text+" That makes %d permits of %d.", append(args, weight, n.Limit)
	}
	w.add(Violation{Rule: Overlap, Name: n.Name, From: c.Got, To: until, Claims: append(ids(conflicts...), c.ID)}, text, args...)
}
