package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// checkFeatures checks the rules of the features above the locks.
func (h *history) checkFeatures() {
	damaged := h.w.plan.damagesNodes()
	for _, c := range h.calls {
		if c.granted && c.name != "" {
			h.checkConfirmed(c, damaged)
			h.checkUnhealthy(c)
			h.checkDetachedHolds(c)
		}
		if c.process.isDead() {
			continue
		}
		switch c.verb {
		case "once":
			h.checkOnce(c, damaged)
		case "elect":
			h.checkRun(c)
		}
	}
	if !damaged {
		h.checkKeyOrder()
		h.checkHealthHandover()
	}
}

// checkConfirmed: Confirm returns nil only if the lease held the name when the backend
// handled the request, and so does Attach. No other claim can have been granted the name
// before.
func (h *history) checkConfirmed(c *call, damaged bool) {
	asked := moment(-1)
	for _, x := range c.confirmed {
		if x.err == nil {
			asked = x.sent
		}
	}
	if c.attachedTo != nil {
		asked = c.sent
		if c.fence != c.attachedTo.fence {
			h.violatedLocked(c.name, "%v was attached with fence %d, and detached with %d", c, c.fence, c.attachedTo.fence)
		}
	}
	for _, o := range h.calls {
		if asked >= 0 && !damaged && o.granted && o.name == c.name && o.excludes(c) && o.fence > c.fence && o.believedFrom < asked && !h.passed(c) {
			h.violatedLocked(c.name, "%v was confirmed at %v, and %v was granted before that", c, asked, o)
		}
	}
}

// checkUnhealthy: an unhealthy holder loses its lease within a third of a TTL.
func (h *history) checkUnhealthy(c *call) {
	if !c.health || c.unhealthyAfter == never || c.process.isDead() {
		return
	}
	last := c.believedFrom + c.unhealthyAfter + c.ttl/3 + answerTolerance
	for _, end := range []moment{c.releaseBegan, c.lossSeen} {
		if end != never && end <= last {
			return
		}
	}
	h.violatedLocked(c.name, "%v was unhealthy from %v on, and held until %v", c, c.believedFrom+c.unhealthyAfter, max(c.releaseBegan, c.lossSeen))
}

// checkHealthHandover: no lease is passed on inside its process to or from a claim with a
// health function. Consecutive fences belong to one hold.
func (h *history) checkHealthHandover() {
	if h.w.plan.backend == "quorum" {
		return
	}
	for _, a := range h.calls {
		for _, b := range h.calls {
			if a.granted && b.granted && a.name == b.name && a.process == b.process && a.weight == driver.Exclusive && a.fence+1 == b.fence && (a.health || b.health) {
				h.violatedLocked(a.name, "%v was passed on to %v, and one of them has a health function", a, b)
			}
		}
	}
}

// checkKeyOrder: the functions of a Once begin in the order of their keys. A key runs at
// most one function or, with WithAtLeastOnce, functions until one has succeeded.
func (h *history) checkKeyOrder() {
	for i, a := range h.tasks {
		for _, b := range h.tasks[i+1:] {
			spent := !a.by.atLeastOnce || a.by.hasRun && a.by.answer == nil && a.by.releaseReturned != never && a.by.releaseReturned <= b.began
			if spent && b.key <= a.key {
				h.violatedLocked(b.by.name, "%v ran the function of key %q, but %v had run key %q", b.by, b.key, a.by, a.key)
			}
		}
	}
}

// checkOnce: if Do answers that a key is done, a function has done it.
func (h *history) checkOnce(c *call, damaged bool) {
	if c.answered == never || damaged {
		return
	}
	if !c.hasRun && c.answer == nil { // Do answers that the key is done
		for _, o := range h.calls {
			if o.verb == "once" && o != c && o.key >= c.key && o.began <= c.answered && (o.granted || !h.w.plan.quiet() || o.err != nil || o.process.isDead()) {
				if !c.atLeastOnce || slices.ContainsFunc(h.tasks, func(t *task) bool { return t.by == o && t.done && o.releaseBegan <= c.answered }) {
					return
				}
			}
		}
		h.violatedLocked(c.name, "the answer to %v is that %q is done, but no task has done it", c, c.key)
	}
	lost := errors.Is(c.answer, pawl.ErrLost)
	if c.hasRun && c.outcome == "" && c.answer != nil && !lost && h.w.plan.quiet() && !h.mayTimeOut(c) {
		h.violatedLocked(c.name, "%v has done %q and nothing had gone wrong, but its answer is: %v", c, c.key, c.answer)
	}
}

// checkRun: Run returns the error of its function, ctx's error when ctx has ended, or
// that the client is closed, and nothing else. It continues when its function has
// resigned.
func (h *history) checkRun(c *call) {
	err, ctxOver := c.answer, c.ctxEnds != never && c.answered >= c.ctxEnds
	switch {
	case c.answered == never:
	case c.ownError:
		if !errors.Is(err, errOwn) {
			h.violatedLocked(c.name, "%v: the function returned an error of its own, and Run: %v", c, err)
		}
	case errors.Is(err, pawl.ErrClosed) && c.process.closed(), ctxOver && (err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, pawl.ErrLost)):
	case err == nil && len(c.terms) > 0 && !c.resigned:
	default:
		h.violatedLocked(c.name, "%v: Run returned, and its function had not: %v", c, err)
	}
}

// checkValueIsWritten checks, long after everything works again, that the name has the
// value that an instance set while it waited.
func (h *history) checkValueIsWritten(c *call, value []byte) {
	if h.w.plan.backend == "quorum" {
		return
	}
	if e := h.w.nodes[0].entry(c.name); e.ValueFence != c.fence || string(e.Value) != string(value) {
		h.w.violated(c.name, "%v had set its value before its term, but the name has %q of %d", c, e.Value, e.ValueFence)
	}
}

// checkRenewals checks renewals when a node handles them: no renewal of a detached lease
// is under way any more. There are two exceptions. The network may keep a message for
// longer than a request lasts. In a quorum a majority has answered, and a renewal may
// still be under way to the other nodes.
func (h *history) checkRenewals(p *process, leases []driver.LeaseRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range leases {
		if c := h.detached[l.Token]; c != nil && c.process == p && h.w.plan.quiet() && h.w.plan.backend != "quorum" {
			h.violatedLocked(c.name, "%v was detached, but process %d renews it", c, p.number)
		}
	}
}

// mayStayHeld reports whether a lease may be held without a holder: it was detached, and
// not attached and released since. Nodes of a quorum may have another fence than the
// quorum.
func (h *history) mayStayHeld(p *process, fence uint64, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.calls, func(c *call) bool {
		a := c.attached
		same := c.fence >= fence && c.fence < fence+driver.MaxFences || h.w.plan.backend == "quorum" && c.process == p
		return c.detached > 0 && c.name == name && same && (a == nil || a.releaseReturned == never || a.releaseErr != nil || a.process.mayLeave())
	})
}

// checkWatchers: when everything is over, each watcher has seen the last state. A watch
// polls an unchanged name each 5 s, and gives up a request 5 s after it was sent.
func (w *world) checkWatchers() {
	h := &w.history
	watched := slices.DeleteFunc(slices.Clone(h.calls), func(c *call) bool {
		return c.verb != "watch" || c.hold != never || c.process.isDead() || c.process.closed()
	})
	if len(watched) == 0 || w.plan.backend == "quorum" {
		return
	}
	time.Sleep(12 * time.Second)
	for _, c := range watched {
		e := w.nodes[0].entry(c.name)
		h.mu.Lock()
		if c.answer == nil && (len(c.sightings) == 0 || !alike(&e, &c.sightings[len(c.sightings)-1].entry)) {
			h.violatedLocked(c.name, "%v has not seen the last state: %v", c, e)
		}
		h.checkExpiriesSeen(c)
		h.checkOpeningsSeen(c)
		h.mu.Unlock()
	}
}

func alike(a, b *driver.Entry) bool {
	return slices.EqualFunc(a.Holders, b.Holders, func(x, y driver.Holder) bool { return x.Fence == y.Fence }) && len(a.Waiters) == len(b.Waiters)
}

// checkExpiriesSeen: a watcher sees the end of a lease that ends by itself, and not only
// at its next regular poll. Such leases were detached and not attached again.
func (h *history) checkExpiriesSeen(watcher *call) {
	if !h.w.plan.quiet() {
		return
	}
	for _, c := range h.calls {
		if c.detached == 0 || c.attached != nil || c.name != watcher.name || c.detached < watcher.began {
			continue
		}
		last := c.detached + c.ttl + c.ttl/500 + answerTolerance + 4*h.w.plan.weather.high
		if !h.w.pushesChanges() {
			last += time.Second + c.ttl/8
		}
		holds, until := false, moment(0)
		for _, s := range watcher.sightings {
			has := slices.ContainsFunc(s.entry.Holders, func(x driver.Holder) bool { return x.Fence == c.fence })
			if holds && !has {
				until = s.at
			}
			holds = has
		}
		if until > last || holds && h.w.now() > last {
			h.violatedLocked(c.name, "%v ended by itself at %v, and %v saw that at %v", c, c.detached+c.ttl, watcher, until)
		}
	}
}

// pushesChanges reports whether the backend pushes changes.
func (w *world) pushesChanges() bool { return w.plan.backend == "memory" && w.plan.fateSeed%4 < 2 }
