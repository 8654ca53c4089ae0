package sim

import (
	"cmp"
	"slices"
	"time"
)

// checkIdle: no claim waits for a free name. In a quiet plan the name is free for no
// longer than a hand-over takes. Otherwise it is free until the leases of dead holders
// have expired, or until a poll has replaced a lost signal.
func (h *history) checkIdle() {
	for _, n := range h.w.plan.names {
		for _, c := range h.calls {
			if c.name == n.name && c.verb == "lock" && c.answered != never && !c.process.isDead() {
				h.checkWait(c)
			}
		}
	}
}

// checkWait checks the longest time within the wait of c in which no call held the name.
func (h *history) checkWait(c *call) {
	end := c.answered
	if c.granted {
		end = c.believedFrom
	}
	from, to := c.began, end
	if !h.w.plan.quiet() {
		from = max(from, h.w.faultFreeFrom())
	}
	bound, cause := h.maxIdle(c)
	var held [][2]moment
	for _, o := range h.calls {
		if o != c && o.name == c.name && o.verb == "break" && o.answered != never {
			held = append(held, [2]moment{o.began, o.answered + o.delay + o.delay/250})
		}
		if o == c || o.name != c.name || !o.granted && o.verb != "all" { // All may hold some names while it waits
			continue
		}
		until := o.releaseBegan
		if until == never || o.lossSeen != never && o.lossSeen < until {
			until = o.lossSeen
		}
		if o.releaseReturned != never {
			until = max(until, o.releaseReturned)
		}
		if o.detached > 0 {
			until = o.detached + o.ttl + o.delay
		}
		if o.minHold > 0 && o.granted {
			until = max(until, o.believedFrom+o.minHold+o.minHold/250)
		}
		if !o.granted {
			until = o.answered
		}
		if until == never {
			until = to
		}
		began := o.began
		if o.granted && o.verb != "all" && h.w.plan.quiet() { // it may have waited as long as c
			began = max(began, o.believedFrom-bound)
		}
		held = append(held, [2]moment{began, until})
	}
	slices.SortFunc(held, func(a, b [2]moment) int { return cmp.Compare(a[0], b[0]) })
	for _, x := range held {
		if x[0] > from && min(x[0], to)-from > bound {
			to = min(x[0], to)
			break
		}
		from = max(from, x[1])
	}
	if to-from > bound {
		h.violatedLocked(c.name, "%v waited, and the name was free from %v to %v; %s takes at most %v", c, from, to, cause, bound)
	}
}

// maxIdle returns the longest time for which the name may be idle while c waits, and
// the cause.
func (h *history) maxIdle(c *call) (time.Duration, string) {
	w := h.w
	longest, heldLonger, gaveUp := time.Duration(0), false, false
	for _, o := range h.calls {
		if o.name != c.name {
			continue
		}
		longest = max(longest, o.ttl+o.delay+o.minHold)
		heldLonger = heldLonger || o.maxHold > 0 || o.health || o.verb == "force" || o.detaches
		heldLonger = heldLonger || (o.delay > 0 || o.minHold > 0 || o.verb == "break") && !w.noticesOpeningAtOnce()
		gaveUp = gaveUp || o.ctxEnds != never && o.answered >= o.ctxEnds
	}
	switch {
	case !w.plan.quiet(), heldLonger:
	case gaveUp: // the request of the abandoned claim may arrive late
		return w.settleTime(), "the end of an abandoned claim"
	default:
		return 100*time.Millisecond + 20*w.plan.weather.high, "a hand-over"
	}
	for _, f := range w.plan.faults {
		if f.kind == "jump" {
			longest += max(-f.lasts, f.lasts)
		}
	}
	return 2*longest + 10*time.Second + w.settleTime(), "the expiry of dead holders"
}

// noticesOpeningAtOnce reports whether a client learns within the time of a message that
// a closed name has opened, or that a minimum hold has ended. It does if one clock
// decides that.
func (w *world) noticesOpeningAtOnce() bool {
	return w.plan.backend == "memory" || w.plan.backend == "redis"
}
