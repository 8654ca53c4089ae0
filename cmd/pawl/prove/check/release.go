package check

import (
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// releaseLied finds releases that returned OK although another holder had got the name
// before. OK means that the lease was held until the release.
func (w *world) releaseLied(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Released <= c.Got })
		before := slices.DeleteFunc(slices.Clone(holders), func(h *history.Claim) bool { return !w.heldBefore(h, c) })
		conflicts := n.conflicting(before, c)
		unsure := func(h *history.Claim) bool { return !wasSure(c) || h.Believed <= c.Got }
		if i := slices.IndexFunc(conflicts, unsure); i >= 0 { // overlap reports it otherwise
			h := conflicts[i]
			w.add(Violation{Rule: ReleaseLied, Name: n.Name, From: c.Got, To: h.Released, Claims: append(ids(conflicts...), c.ID)},
				"%s released %q at %s, and the release returned OK, as if the lease was held until then. But %s had got the name at %s.",
				upper{h}, n.Name, at(h.Released), who{c}, at(c.Got))
		}
		if c.Release == history.OK && c.Released > c.Got {
			holders = append(holders, c)
		}
	}
}

// heldBefore reports whether h and c certainly held the name at the same time, if the
// answer to h's release is right. It requires that c's holder was sure, or that c was
// granted after h: with a greater fence, or asked for after h's grant.
func (w *world) heldBefore(h, c *history.Claim) bool {
	later := c.Asked > h.Got || w.Run.Fenced && c.Fence > h.Fence
	return h.Got < c.Got && (wasSure(c) || later) && !w.forgot(h, c.Got)
}
