package sim

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// losses are the rules for the loss of a lease.
func (h *history) losses() {
	for _, c := range h.calls {
		if !c.granted || c.process.isDead() {
			continue
		}
		h.lostForAReason(c)
		h.stopsInTime(c)
		for _, o := range h.calls {
			if o != c && o.granted && o.name == c.name && o.excludes(c) && o.believed > c.believed && o.fence > c.fence {
				h.nobodyBefore(c, o)
				h.hears(c, o)
				h.saysSo(c, o)
			}
		}
	}
}

// lostForAReason: where nothing goes wrong, no lease is lost. A broken lease was broken
// by a call.
func (h *history) lostForAReason(c *call) {
	why := c.lost
	if why == nil {
		if lost, ok := errors.AsType[*pawl.LostError](c.released); ok {
			why = lost
		}
	}
	if why == nil || why.Name != c.name || why.Reason == pawl.ReasonMaxHold || why.Reason == pawl.ReasonClosed || why.Reason == pawl.ReasonUnhealthy && c.sick != never {
		return
	}
	end := max(c.told, c.ended)
	if h.w.plan.quiet() && !h.shockedLocked(c.name, c.began-h.w.maxStepTime(), end) {
		h.violatedLocked(c.name, "%v was lost (%v), and nothing had gone wrong", c, why)
	}
	if why.Reason != pawl.ReasonBroken {
		return
	}
	for _, s := range h.shocks {
		if s.name == c.name && s.from <= end && s.to >= c.began && s.by != c {
			return
		}
	}
	h.violatedLocked(c.name, "%v was broken (%v), and nobody can have done that then", c, why)
}

// stopsInTime: a lease with a maximum hold ends by then.
func (h *history) stopsInTime(c *call) {
	if c.maxHold == 0 {
		return
	}
	for _, end := range []moment{c.left, c.told} {
		if end != never && end <= c.believed+c.maxHold+time.Millisecond {
			return
		}
	}
	h.violatedLocked(c.name, "%v was held longer than it may", c)
}

// nobodyBefore: no other claim is granted the name before LostError.StopBy, or within the
// minimum hold of the lease.
func (h *history) nobodyBefore(c, next *call) {
	if h.excusedLocked(c, next.believed) || h.shockedLocked(c.name, c.began, next.believed) || next.verb == "force" {
		return
	}
	slack := c.ttl/250 + c.delay/250 + time.Millisecond // clocks drift
	gone := c.left != never && c.left <= next.believed  // the user has stopped already
	if c.lost != nil && c.lost.Reason != pawl.ReasonClosed && !gone {
		if until := c.lost.StopBy.Sub(h.w.start); next.believed < until-slack {
			h.violatedLocked(c.name, "%v had until %v to stop, and %v was granted at %v", c, until, next, next.believed)
		}
	}
	heard := c.released == nil && c.detached == 0 && (!c.do || h.w.plan.quiet()) // else as for a dead process
	if until := c.began + c.minHold; c.minHold > 0 && heard && next.believed < until-c.minHold/250-time.Millisecond {
		h.violatedLocked(c.name, "%v holds it until %v at least, and %v was granted at %v", c, until, next, next.believed)
	}
}

// hears: in every case, a holder learns of its loss within one TTL after another claim
// was granted the name. No renewal can have succeeded since then.
func (h *history) hears(c, next *call) {
	until := next.believed + c.ttl
	if (c.left == never || c.left > until) && (c.told == never || c.told > until) {
		h.violatedLocked(c.name, "%v believed in it for longer than a TTL after %v was granted", c, next)
	}
}

// saysSo: if another claim was granted the name before a lease was released, Release
// returns an error to its holder. There are exceptions. The lease may have been passed on
// in its process without a request. Do may have got no answer from the backend, for
// example because other claims swapped first for as long as a request may take. Over a
// quorum, a clock that jumped may have taken the holder's majority; if the other claim
// has come and gone by its next renewal, that renewal finds a majority again.
func (h *history) saysSo(c, next *call) {
	if c.left == never || c.ended == never || next.believed >= c.left || c.released != nil || h.passed(c) {
		return
	}
	if c.do && (!h.w.plan.quiet() || c.ended >= c.left+attempt(c.ttl)) {
		return
	}
	if c.detached > 0 && h.excusedLocked(c, next.believed) { // the answer to Detach was on its way
		return
	}
	if h.w.plan.backend == "quorum" && h.excusedLocked(c, next.believed) && next.left < next.believed+c.ttl/2 {
		return
	}
	h.violatedLocked(c.name, "%v was told that all is well, but %v was granted before it was released", c, next)
}
