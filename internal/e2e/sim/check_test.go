package sim

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// check applies the rules that look at a whole schedule. The others (exclusion, FIFO,
// leftovers) are looked at while it runs.
func (w *world) check() {
	h := &w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fences()
	h.losses()
	h.replies()
	h.costs()
	h.idles()
	h.pairs()
	h.features()
	h.breaks()
}

// quiet: nothing goes wrong, and every message arrives, and soon.
func (p *plan) quiet() bool { return p.weather.slow == 0 && len(p.faults) == 0 }

// longest is how long something may be under way: a message, and a node that hangs or a
// process that is paused meanwhile.
func (w *world) longest() time.Duration {
	d := 2 * max(w.plan.weather.high, w.plan.weather.slowest)
	for _, f := range w.plan.faults {
		if f.kind == "hang" || f.kind == "pause" {
			d += f.lasts
		}
	}
	return d
}

// forced notes how a forced claim or a break was answered. One that failed may still
// happen if its ctx was cancelled, until the end of its request; otherwise it is reported
// as failed only after that. Where a clock is set back, its end is later by as much, see
// driver.End. A break hits nobody but the holder that it names, whenever it arrives.
func (h *history) forced(c *call, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.shocks {
		s := &h.shocks[i]
		if s.by != c {
			continue
		}
		s.to = h.w.now()
		switch {
		case err == nil:
		case c.verb == "break":
			s.to += h.w.longest()
		case c.ctxEnds != never && s.to >= c.ctxEnds || errors.Is(err, pawl.ErrClosed):
			s.to += attempt(c.ttl)
		}
		if err != nil {
			s.to += h.w.setBack()
		}
	}
}

// setBack is by how much the clocks of nodes are set back in all.
func (w *world) setBack() (by time.Duration) {
	for _, f := range w.plan.faults {
		if f.kind == "jump" && f.lasts < 0 {
			by -= f.lasts
		}
	}
	return by
}

// patience bounds every wait, far beyond what it may take, so that one that never ends is
// found.
func (w *world) patience() time.Duration {
	total := max(w.heals()-w.now(), 0) + time.Minute
	for _, p := range w.plan.processes {
		for _, steps := range p.sessions {
			for _, s := range steps {
				total += s.after + max(s.hold, 0) + 2*s.ttl + s.delay + s.minHold + 5*time.Second + s.lasts(w.plan)
			}
		}
	}
	return total
}
