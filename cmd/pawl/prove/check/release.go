package check

import (
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// releaseLied finds releases that said OK, though another holder had got the name before.
// A release that says OK says that the lease was held until then.
func (w *world) releaseLied(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Released <= c.Got })
		before := slices.DeleteFunc(slices.Clone(holders), func(h *history.Claim) bool { return !w.heldBefore(h, c) })
		no := n.against(before, c)
		unsure := func(h *history.Claim) bool { return !wasSure(c) || h.Believed <= c.Got }
		if i := slices.IndexFunc(no, unsure); i >= 0 { // overlap reports it otherwise
			h := no[i]
			w.add(Violation{Rule: ReleaseLied, Name: n.Name, From: c.Got, To: h.Released, Claims: append(ids(no...), c.ID)},
				"%s released %q at %s, and the release said that the lease was held until then. But %s had got the name at %s.",
				upper{h}, n.Name, at(h.Released), who{c}, at(c.Got))
		}
		if c.Release == history.OK && c.Released > c.Got {
			holders = append(holders, c)
		}
	}
}

// heldBefore reports whether h certainly held the name at an instant when c did, if the
// release of h is right: the holder of c was sure of it then, or c was granted after h,
// because it has the greater fence or was asked for after the grant of h.
func (w *world) heldBefore(h, c *history.Claim) bool {
	later := c.Asked > h.Got || w.Run.Fenced && c.Fence > h.Fence
	return h.Got < c.Got && (wasSure(c) || later) && !w.forgot(h, c.Got)
}
