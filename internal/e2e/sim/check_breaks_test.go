package sim

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// checkBreaks checks the rules of breaks and forced claims. They apply to a backend with
// one node, whose clock and data are sound.
func (h *history) checkBreaks() {
	if h.w.plan.backend == "quorum" || h.w.plan.damagesNodes() {
		return
	}
	for _, c := range h.calls {
		if c.granted && c.lost != nil && c.lost.Name == c.name && !c.process.isDead() {
			h.checkReason(c)
		}
	}
	for _, s := range h.shocks {
		if s.what != "break" || s.by.err != nil || s.by.answered == never {
			continue
		}
		for _, c := range h.calls {
			if c.granted && c.name == s.name {
				h.checkClosedAfterBreak(&s, c)
				h.checkBreakSeen(&s, c)
			}
		}
	}
}

// checkReason: if a lease was broken, a break named it or a forced claim took it. In a
// quiet plan no lease expires.
func (h *history) checkReason(c *call) {
	switch c.lost.Reason {
	case pawl.ReasonBroken:
		if !slices.ContainsFunc(h.shocks, func(s shock) bool {
			return s.name == c.name && s.by != c && (s.what == "force" || s.names(c))
		}) {
			h.violatedLocked(c.name, "%v was broken, but no break named its fence %d", c, c.fence)
		}
	case pawl.ReasonExpired:
		if h.w.plan.quiet() && c.attachedTo == nil && !h.mayTimeOut(c) {
			h.violatedLocked(c.name, "%v expired although every message arrives: %v", c, c.lost)
		}
	case pawl.ReasonUnreachable, pawl.ReasonMaxHold, pawl.ReasonClosed, pawl.ReasonUnhealthy: // its own client decides
	}
}

// names reports whether a break may name this lease. Only an exclusive lease has more
// than one fence.
func (s *shock) names(c *call) bool {
	return s.fence == c.fence || c.weight == driver.Exclusive && s.fence < c.fence && c.fence-s.fence < driver.MaxFences
}

// checkClosedAfterBreak: after a break no claim is granted the name until its delay is
// over, except a forced claim.
func (h *history) checkClosedAfterBreak(s *shock, o *call) {
	end := s.from + s.by.delay - s.by.delay/250 - time.Millisecond // clocks drift
	if o.began <= s.to || o.attachedTo != nil || o.believedFrom >= end || o.verb == "force" || h.follows(o) {
		return
	}
	if !slices.ContainsFunc(h.shocks, func(x shock) bool {
		return x.what == "force" && x.name == s.name && x.from <= o.believedFrom && x.to >= s.from
	}) {
		h.violatedLocked(s.name, "%v had broken a lease, and %v was granted before %v", s.by, o, end)
	}
}

// checkBreakSeen: in a quiet plan, a holder sees a break when the signal arrives, and not
// only at its next renewal.
func (h *history) checkBreakSeen(s *shock, c *call) {
	if !h.w.plan.quiet() || h.mayTimeOut(c) || c.attachedTo != nil || c.detached > 0 || c.fence != s.fence || c.process.isDead() {
		return
	}
	last := s.to + 100*time.Millisecond + 20*h.w.plan.weather.high
	if (c.releaseBegan == never || c.releaseBegan > last) && (c.lossSeen == never || c.lossSeen > last) && c.believedFrom < s.from {
		h.violatedLocked(c.name, "%v was broken by %v at %v, and saw its loss at %v", c, s.by, s.to, c.lossSeen)
	}
}
