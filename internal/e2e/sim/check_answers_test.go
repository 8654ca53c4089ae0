package sim

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// checkAnswers checks the answers to calls, and their times.
func (h *history) checkAnswers() {
	for _, c := range h.calls {
		if c.process.isDead() {
			continue
		}
		h.checkAnswered(c)
		if !c.granted && c.err != nil {
			h.checkFailure(c)
		}
	}
}

// answerTolerance is the time that a call may take beyond its limit. A call ends when its
// ctx ends, and a release after at most one attempt.
const answerTolerance time.Duration = 50 * time.Millisecond

func (h *history) checkAnswered(c *call) {
	tolerance := answerTolerance
	if c.verb == "elect" { // Run releases its lease after its function
		tolerance += requestTimeout(c.ttl)
		for _, t := range c.terms {
			tolerance += max(t.releaseBegan-max(c.ctxEnds, 0), 0)
		}
	}
	switch {
	case c.answered == never:
		h.violatedLocked(c.name, "%v was never answered", c)
	case !c.granted && c.ctxEnds != never && c.answered > c.ctxEnds+tolerance, c.granted && !c.usesDo && c.ctxEnds != never && c.believedFrom > c.ctxEnds+tolerance:
		h.violatedLocked(c.name, "%v was answered at %v, though its ctx was over at %v", c, c.answered, c.ctxEnds)
	case c.releaseBegan != never && !c.usesDo && c.releaseReturned > c.releaseBegan+requestTimeout(c.ttl)+tolerance:
		h.violatedLocked(c.name, "the release of %v took %v", c, c.releaseReturned-c.releaseBegan)
	}
}

// requestTimeout returns the time limit of one request, by Options.RequestTimeout.
func requestTimeout(ttl time.Duration) time.Duration { return min(ttl/6, 3*time.Second) }

func (h *history) checkFailure(c *call) {
	ctxOver := c.ctxEnds != never && c.answered >= c.ctxEnds
	isCtx := !errors.Is(c.err, pawl.ErrLost) && (errors.Is(c.err, context.DeadlineExceeded) || errors.Is(c.err, context.Canceled))
	switch {
	case isCtx && ctxOver:
	case isCtx:
		h.violatedLocked(c.name, "%v starved: %v", c, c.err)
	case errors.Is(c.err, pawl.ErrClosed) && c.process.closed():
	case errors.Is(c.err, pawl.ErrHeld) && c.verb == "try":
		h.checkRefusal(c)
	case errors.Is(c.err, pawl.ErrNoSuchLease) && c.verb == "break":
	case c.verb == "elect": // see checkRun
	case errors.Is(c.err, pawl.ErrHeld) && c.verb == "all" && c.usesTry:
	case errors.Is(c.err, pawl.ErrLost) && c.verb == "attach" && c.answered+h.w.maxStepTime() >= c.attachedTo.detached+c.ttl-c.ttl/250:
	case errors.Is(c.err, pawl.ErrLost) && (c.verb == "attach" || c.verb == "all") && (!h.w.plan.quiet() || h.anyShocked(c)):
	case errors.Is(c.err, pawl.ErrUnavailable) && (!h.w.plan.quiet() || h.shockedLocked(c.name, c.began, c.answered)):
	case errors.Is(c.err, pawl.ErrUnavailable) && h.mayTimeOut(c):
	// Do lost its lease before f began.
	case errors.Is(c.err, pawl.ErrLost) && c.usesDo && (!h.w.plan.quiet() || h.shockedLocked(c.name, c.began, c.answered)):
	case c.verb == "close":
	default:
		h.violatedLocked(c.name, "%v failed: %v", c, c.err)
	}
}

// mayTimeOut reports whether a step may need more time than a request has. Such a step
// makes more than one round trip: it reads, swaps, and reads again when other claims were
// quicker. A claim also gets the error of another claim of its process that waits for the
// name.
func (h *history) mayTimeOut(c *call) bool {
	ttl := c.ttl
	for _, o := range h.calls {
		if o.process == c.process && o.name == c.name && o.ttl > 0 {
			ttl = min(ttl, o.ttl)
		}
		if o == c && c.maxHold > 0 {
			ttl = min(ttl, c.maxHold)
		}
	}
	trips := 4 * len(h.w.processes) // each process may be quicker, again and again
	return h.w.plan.backend == "store" && time.Duration(2*trips)*h.w.plan.weather.high > requestTimeout(ttl)
}

// checkRefusal checks that a try is refused only if the backend may have a lease or a
// place of another call.
func (h *history) checkRefusal(c *call) {
	for _, o := range h.calls {
		if o != c && o.name == c.name && o.began <= c.answered && h.mayHoldUntil(o) >= c.began {
			return
		}
	}
	if !h.shockedLocked(c.name, 0, c.answered) {
		h.violatedLocked(c.name, "%v was refused (%v), but no call can have held the name then", c, c.err)
	}
}

// mayHoldUntil returns the time until which the backend may have a lease or a place of a
// call. The release of a call that has ended may still be under way in two cases: Do does
// not report a release without an answer, and a release of a quorum succeeds when a
// majority has answered.
func (h *history) mayHoldUntil(c *call) moment {
	end := max(c.answered, c.releaseReturned)
	switch {
	case c.answered == never, c.process.isDead(), c.granted && c.releaseReturned == never, c.detached > 0, c.process.closed(), c.minHold > 0, c.delay > 0:
		return 1 << 62
	case !c.granted && c.verb == "try" && errors.Is(c.err, pawl.ErrHeld), c.granted && c.releaseErr == nil && (h.w.plan.quiet() || !c.usesDo && h.w.plan.backend != "quorum"):
		return end
	}
	return end + max(h.w.settleTime(), 2*c.ttl)
}

// anyShocked reports whether any name of a call had a shock.
func (h *history) anyShocked(c *call) bool {
	for _, o := range append([]string{c.name}, c.others...) {
		if h.shockedLocked(o, c.began, c.answered) {
			return true
		}
	}
	return false
}
