package sim

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// checkQueueHead checks a node that has just handled a request: the head of the queue
// does not fit beside the holders. Otherwise the node would have granted it the name.
func (w *world) checkQueueHead(n *node, name string) {
	e := n.entry(name)
	if e.ClosedFor > 0 || len(e.Waiters) == 0 {
		return
	}
	head, held := e.Waiters[0], int64(0)
	for _, h := range e.Holders {
		held += int64(h.Permits)
	}
	if head.Permits == 1 && !slices.ContainsFunc(w.plan.names, func(p namePlan) bool { return p.name == name && p.kind == "permits" }) {
		head.Limit = driver.Unlimited
	}
	if held+int64(head.Permits) <= int64(head.Limit) {
		w.violated(name, "node %d has handled a request, and lets %s wait for %d of %d, of which %d are held", n.number, head.Owner.Client, head.Permits, head.Limit, held)
	}
}

// checkOpened checks that a forced claim that a node has granted has opened the name.
func (w *world) checkOpened(n *node, name string) {
	if e := n.entry(name); e.ClosedFor > 0 {
		w.violated(name, "node %d has granted a forced claim, but the name is closed for %v", n.number, e.ClosedFor)
	}
}

// checkDetachedHolds: a lease that was detached, and not attached again, blocks the name
// until it ends by itself, and for its lock-delay after that.
func (h *history) checkDetachedHolds(c *call) {
	if c.detached == 0 || c.attached != nil || !h.w.plan.quiet() || h.w.plan.backend == "quorum" {
		return
	}
	until := c.detached - 4*h.w.plan.weather.high + c.ttl + c.delay - (c.ttl+c.delay)/250 - time.Millisecond
	for _, o := range h.calls {
		if o.granted && o.name == c.name && o.excludes(c) && o.attachedTo == nil && o.fence > c.fence && o.believedFrom > c.detached && o.believedFrom < until && !h.shockedLocked(c.name, c.began, o.believedFrom) {
			h.violatedLocked(c.name, "%v was detached and left alone, so the name is held until %v, but %v was granted", c, until, o)
		}
	}
}

// checkOpeningsSeen: a watcher that has seen a name closed sees it open.
func (h *history) checkOpeningsSeen(watcher *call) {
	if !h.w.plan.quiet() || h.w.plan.backend == "quorum" {
		return
	}
	for i, s := range watcher.sightings {
		last := s.at + s.entry.ClosedFor + s.entry.ClosedFor/250 + answerTolerance + 4*h.w.plan.weather.high
		if !h.w.pushesChanges() {
			last += time.Second + s.entry.ClosedFor/8
		}
		next := h.w.now()
		if i+1 < len(watcher.sightings) {
			next = watcher.sightings[i+1].at
		}
		if s.entry.ClosedFor > 0 && next > last {
			h.violatedLocked(watcher.name, "%v saw at %v that the name is closed for %v, and nothing more until %v", watcher, s.at, s.entry.ClosedFor, next)
		}
	}
}
