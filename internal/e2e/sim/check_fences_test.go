package sim

import (
	"slices"
	"time"
)

// checkFences: any two leases of a name have different fences, and the later lease has
// the greater one. A lease is later if its claim began after the other lease was shown to
// its user. It is also later if it was shown later, and the other lease could not have
// been granted after it.
func (h *history) checkFences() {
	for i, a := range h.calls {
		for _, b := range h.calls[i+1:] {
			if !a.granted || !b.granted || a.name != b.name {
				continue
			}
			if a.fence == b.fence && a.attachedTo != b && b.attachedTo != a {
				h.violatedLocked(a.name, "%v and %v have the same fence %d", a, b, a.fence)
			}
			h.checkFenceRises(a, b)
			h.checkFenceRises(b, a)
		}
	}
}

// checkFenceRises checks two leases of which a was shown first.
//
// If they exclude each other, the later lease has the greater fence. There is one
// exception: b may belong to an older grant that a shock ended before its process knew
// that. The grant's answer was still on the way then, or the process passed the lease on.
// In a quiet plan the process knows of the shock after a message, otherwise after a term.
// All returns its leases only when it has the last one, and until then it may not know
// that another one was taken. It needs a term, because a renewal has to check the signal.
func (h *history) checkFenceRises(a, b *call) {
	if a.fence <= b.fence || a.believedFrom >= b.believedFrom || b.attachedTo != nil && !a.excludes(b) {
		return
	}
	unaware := b.ttl + requestTimeout(b.ttl)
	if h.w.plan.quiet() && b.verb != "all" {
		unaware = h.w.maxStepTime() + time.Millisecond
	}
	passed := h.follows(b) && h.shockedLocked(b.name, b.began-unaware, b.believedFrom)
	switch {
	case a.believedFrom < b.began && !passed:
		h.violatedLocked(a.name, "the fence of %v is %d, but the fence of %v, which began after that grant, is %d", a, a.fence, b, b.fence)
	case a.excludes(b) && (a.believedFrom+unaware < b.believedFrom || !h.shockedLocked(b.name, b.began-h.w.maxStepTime(), b.believedFrom)):
		h.violatedLocked(a.name, "the fence of %v is %d, but the fence of %v, which was granted later, is %d", a, a.fence, b, b.fence)
	}
}

// follows reports whether a lease may have been passed on inside its process.
func (h *history) follows(b *call) bool { return h.processHas(b, b.fence-1) }

// passed reports whether the lease may have been passed on to another call.
func (h *history) passed(a *call) bool { return h.processHas(a, a.fence+1) }

// processHas reports whether the process of a call has a lease of its name with a fence.
func (h *history) processHas(c *call, fence uint64) bool {
	return slices.ContainsFunc(h.calls, func(o *call) bool {
		return o.granted && o.process == c.process && o.name == c.name && o.fence == fence
	})
}
