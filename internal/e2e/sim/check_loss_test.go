package sim

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// checkLosses checks the rules for the loss of a lease.
func (h *history) checkLosses() {
	for _, c := range h.calls {
		if !c.granted || c.process.isDead() {
			continue
		}
		h.checkLossReason(c)
		h.checkMaxHold(c)
		for _, o := range h.calls {
			if o != c && o.granted && o.name == c.name && o.excludes(c) && o.believedFrom > c.believedFrom && o.fence > c.fence {
				h.checkNextGrant(c, o)
				h.checkLossSeen(c, o)
				h.checkRelease(c, o)
			}
		}
	}
}

// checkLossReason: in a quiet plan no lease is lost without a shock. A call has broken
// each broken lease.
func (h *history) checkLossReason(c *call) {
	loss := c.lost
	if loss == nil {
		if lost, ok := errors.AsType[*pawl.LostError](c.releaseErr); ok {
			loss = lost
		}
	}
	if loss == nil || loss.Name != c.name || loss.Reason == pawl.ReasonMaxHold || loss.Reason == pawl.ReasonClosed || loss.Reason == pawl.ReasonUnhealthy && c.unhealthyAfter != never {
		return
	}
	end := max(c.lossSeen, c.releaseReturned)
	if h.w.plan.quiet() && !h.shockedLocked(c.name, c.began-h.w.maxStepTime(), end) {
		h.violatedLocked(c.name, "%v was lost (%v), and nothing had gone wrong", c, loss)
	}
	if loss.Reason != pawl.ReasonBroken {
		return
	}
	for _, s := range h.shocks {
		if s.name == c.name && s.from <= end && s.to >= c.began && s.by != c {
			return
		}
	}
	h.violatedLocked(c.name, "%v was broken (%v), but no call can have broken it then", c, loss)
}

// checkMaxHold: a lease with a maximum hold ends within that time.
func (h *history) checkMaxHold(c *call) {
	if c.maxHold == 0 {
		return
	}
	for _, end := range []moment{c.releaseBegan, c.lossSeen} {
		if end != never && end <= c.believedFrom+c.maxHold+time.Millisecond {
			return
		}
	}
	h.violatedLocked(c.name, "%v was held longer than it may", c)
}

// checkNextGrant: no other claim is granted the name before LostError.StopBy, or within
// the minimum hold of the lease.
func (h *history) checkNextGrant(c, next *call) {
	if h.excusedLocked(c, next.believedFrom) || h.shockedLocked(c.name, c.began, next.believedFrom) || next.verb == "force" {
		return
	}
	slack := c.ttl/250 + c.delay/250 + time.Millisecond // clocks drift
	stopped := c.releaseBegan != never && c.releaseBegan <= next.believedFrom
	if c.lost != nil && c.lost.Reason != pawl.ReasonClosed && !stopped {
		if until := c.lost.StopBy.Sub(h.w.start); next.believedFrom < until-slack {
			h.violatedLocked(c.name, "%v had until %v to stop, and %v was granted at %v", c, until, next, next.believedFrom)
		}
	}
	released := c.releaseErr == nil && c.detached == 0 && (!c.usesDo || h.w.plan.quiet()) // in the backend, too
	if until := c.began + c.minHold; c.minHold > 0 && released && next.believedFrom < until-c.minHold/250-time.Millisecond {
		h.violatedLocked(c.name, "%v holds it until %v at least, and %v was granted at %v", c, until, next, next.believedFrom)
	}
}

// checkLossSeen: a holder always sees its loss within one TTL after another claim was
// granted the name, because no renewal can have succeeded since then.
func (h *history) checkLossSeen(c, next *call) {
	until := next.believedFrom + c.ttl
	if (c.releaseBegan == never || c.releaseBegan > until) && (c.lossSeen == never || c.lossSeen > until) {
		h.violatedLocked(c.name, "%v did not see its loss within a TTL after %v was granted", c, next)
	}
}

// checkRelease: Release returns an error if another claim was granted the name before.
// There are exceptions. The lease may have been passed on in its process without a
// request. Do ignores a release without an answer, for example when the swaps of other
// claims were quicker until the request timed out. Over a quorum, a clock that jumped may
// have ended the lease on a majority; if the other claim has ended by the next renewal,
// that renewal finds a majority again.
func (h *history) checkRelease(c, next *call) {
	if c.releaseBegan == never || c.releaseReturned == never || next.believedFrom >= c.releaseBegan || c.releaseErr != nil || h.passed(c) {
		return
	}
	if c.usesDo && (!h.w.plan.quiet() || c.releaseReturned >= c.releaseBegan+requestTimeout(c.ttl)) {
		return
	}
	if c.detached > 0 && h.excusedLocked(c, next.believedFrom) { // the answer to Detach was on its way
		return
	}
	if h.w.plan.backend == "quorum" && h.excusedLocked(c, next.believedFrom) && next.releaseBegan < next.believedFrom+c.ttl/2 {
		return
	}
	h.violatedLocked(c.name, "the release of %v returned nil, but %v was granted before it", c, next)
}
