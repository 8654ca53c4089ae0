package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// settleTime returns how long leases and places of ended calls may stay in the backend,
// after the last answer and after everything works again: until the end of a request
// without an answer, and until its release has been repeated.
func (w *world) settleTime() time.Duration {
	longest := 2 * w.plan.baseTTL
	return 2*requestTimeout(longest) + driver.MaxLead + longest/10 + 4*calm().high + 100*time.Millisecond
}

// settle waits for settleTime.
func (w *world) settle() {
	h := &w.history
	h.mu.Lock()
	last := moment(0)
	for _, c := range h.calls {
		last = max(last, c.answered, c.releaseReturned)
	}
	h.mu.Unlock()
	time.Sleep(max(last, w.faultFreeFrom()) + w.settleTime() - w.now())
}

// checkLeftovers reads the backend after all calls and before a TTL has passed, and again
// when all clients are closed. A released lease holds no name, and an abandoned claim is
// in no queue.
//
// It skips the documented exceptions: a process that was killed, or whose Close returned
// an error; a clock that was set back; the minimum hold; and a node of a quorum that got
// a request for a lease while that lease was detached.
func (w *world) checkLeftovers(when string) {
	for _, f := range w.plan.faults {
		if f.kind == "jump" && f.lasts < 0 {
			return
		}
	}
	now, seen := w.now(), map[string]bool{}
	for _, name := range w.plan.names {
		if seen[name.name] {
			continue
		}
		seen[name.name] = true
		for i, n := range w.nodes {
			e := n.entry(name.name)
			for _, holder := range e.Holders {
				if p := w.owner(holder.Owner); !holder.Released && !p.mayLeave() && !w.mayRepair(p, name.name) && !w.lostAndClosed(p, holder.Fence, now) && !w.history.mayStayHeld(p, holder.Fence, name.name) {
					w.violated(name.name, "%s, but node %d says that %v holds it, fence %d, for %v", when, i, holder.Owner.Client, holder.Fence, holder.ExpiresIn)
				}
			}
			for _, waiter := range e.Waiters {
				if p := w.owner(waiter.Owner); !p.mayLeave() && !w.mayRepair(p, name.name) {
					w.violated(name.name, "%s, but node %d says that %v waits for it, for %v", when, i, waiter.Owner.Client, waiter.ExpiresIn)
				}
			}
		}
	}
}

// owner returns the process of an owner. A quorum puts a tag in front of the client's id.
func (w *world) owner(o driver.Owner) *process {
	for _, p := range w.processes {
		if strings.HasSuffix(o.Client, p.id()) {
			return p
		}
	}
	panic("unknown owner: " + o.Client)
}

// lostAndClosed reports whether a lease was lost, and a renewal under way may have
// prolonged it for no holder. There are two cases. Its user had not released it when the
// client was closed: the user has until LostError.StopBy to stop, so the client does not
// release it then. Or the client tried for a TTL to release it, without success, and the
// renewal came after that; otherwise it would have expired by now.
func (w *world) lostAndClosed(p *process, fence uint64, now moment) bool {
	p.mu.Lock()
	closedAt := p.closedAt
	p.mu.Unlock()
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return closedAt != 0 && slices.ContainsFunc(w.history.calls, func(c *call) bool {
		return c.process == p && c.granted && c.lossSeen != never && (c.releaseBegan == never || c.releaseBegan > closedAt || now > c.lossSeen+c.ttl) &&
			c.fence <= fence && fence < c.fence+driver.MaxFences
	})
}

// mayRepair reports whether a node of a quorum may keep a lease, or a place for it, for a
// TTL: the process that detached it was still claiming it from a minority, and the
// process that attached it does not know that.
func (w *world) mayRepair(p *process, name string) bool {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return w.plan.backend == "quorum" && slices.ContainsFunc(w.history.calls, func(c *call) bool {
		return c.process == p && c.name == name && c.detached > 0
	})
}

// keptFor returns the time for which a released lease may stay after its grant.
func (w *world) keptFor(c *call) time.Duration {
	d := c.minHold + c.minHold/250 + time.Millisecond // clocks drift
	if w.plan.backend == "store" {
		d += 5 * time.Second // a grant may last that much longer there
	}
	return d
}

// checkReleased reads the backend when a lease was released and its minimum hold is over,
// counted from its grant. The lease is gone, and its release has not closed the name.
func (h *history) checkReleased(c *call) {
	if slices.ContainsFunc(h.w.plan.faults, func(f fault) bool { return f.kind == "jump" }) {
		return
	}
	e := h.w.nodes[0].entry(c.name)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, holder := range e.Holders {
		if c.minHold > 0 && holder.Fence == c.fence {
			h.violatedLocked(c.name, "%v was released, its minimum hold is over, and it holds the name for %v", c, holder.ExpiresIn)
		}
	}
	if e.ClosedFor > 0 && c.delay > 0 && h.w.plan.quiet() && !slices.ContainsFunc(h.calls, func(o *call) bool { return o != c && o.name == c.name && o.mayClose() }) {
		h.violatedLocked(c.name, "%v was released, and the name is closed for %v", c, e.ClosedFor)
	}
}

// mayClose reports whether a call may have closed its name: it broke a lease, or had a
// lease that was not released.
func (c *call) mayClose() bool {
	return c.delay > 0 && (c.verb == "break" || c.verb == "force" || c.granted && (c.releaseReturned == never || c.lossSeen != never || c.detached > 0 || c.releaseErr != nil))
}
