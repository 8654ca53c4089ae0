package check

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// releaseLied finds releases that said OK, though another holder had got the name before.
// A release that says OK says that the lease was held until then.
//
// Another claim was certainly granted meanwhile only if its holder was sure of it then,
// or if it was granted after the first claim: it has the greater fence, or it was asked
// for after the grant of the first claim.
func (w *world) releaseLied(n *name) {
	var holders []*history.Claim
	for _, c := range n.granted {
		holders = slices.DeleteFunc(holders, func(h *history.Claim) bool { return h.Released <= c.Got })
		if no := n.against(w.grantedBefore(holders, c), c); no != nil {
			w.lied(n, no, c)
		}
		if c.Release == history.OK && c.Released > c.Got {
			holders = append(holders, c)
		}
	}
}

// grantedBefore returns the holders that certainly held the name at an instant when c
// did, if their releases are right.
func (w *world) grantedBefore(holders []*history.Claim, c *history.Claim) []*history.Claim {
	var before []*history.Claim
	for _, h := range holders {
		if h.Got < c.Got && (sure(c) || w.later(h, c)) && !w.forgot(h, c.Got) {
			before = append(before, h)
		}
	}
	return before
}

// later reports whether b was certainly granted after a.
func (w *world) later(a, b *history.Claim) bool {
	return b.Asked > a.Got || w.run.Fenced && b.Fence > a.Fence
}

func (w *world) lied(n *name, no []*history.Claim, c *history.Claim) {
	unsure := func(h *history.Claim) bool { return !sure(c) || h.Believed <= c.Got }
	if !slices.ContainsFunc(no, unsure) || w.full(ReleaseLied, n.Name.Name) {
		return // overlap reports it
	}
	h := no[slices.IndexFunc(no, unsure)]
	w.add(Violation{
		Rule: ReleaseLied, Name: n.Name.Name, From: c.Got, To: h.Released, Claims: append(ids(no...), c.ID),
		Text: fmt.Sprintf("%s released %q at %s, and the release said that the lease was held until then. But %s had got the name at %s.",
			upper(h), n.Name.Name, at(h.Released), who(c), at(c.Got)),
	})
}
