package sim

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// check applies the rules for a whole schedule. The other rules (exclusion, FIFO,
// leftovers) are checked while the schedule runs.
func (w *world) check() {
	h := &w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkFences()
	h.checkLosses()
	h.checkAnswers()
	h.checkCosts()
	h.checkIdle()
	h.checkObservers()
	h.checkFeatures()
	h.checkBreaks()
}

// quiet reports whether the plan has no faults, and neither lost nor slow messages.
func (p *plan) quiet() bool { return p.weather.slow == 0 && len(p.faults) == 0 }

// maxStepTime returns the longest time of a message, including all hangs and pauses.
func (w *world) maxStepTime() time.Duration {
	d := 2 * max(w.plan.weather.high, w.plan.weather.slowest)
	for _, f := range w.plan.faults {
		if f.kind == "hang" || f.kind == "pause" {
			d += f.lasts
		}
	}
	return d
}

// noteForced records the answer to a forced claim or a break. A failed request may still
// take effect until its end if its ctx was cancelled. Otherwise the caller gets the error
// only after the end. If a clock is set back, the end is later by that much, see
// driver.End. A break ends only the lease that it names, even if it arrives late.
func (h *history) noteForced(c *call, err error) {
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
			s.to += h.w.maxStepTime()
		case c.ctxEnds != never && s.to >= c.ctxEnds || errors.Is(err, pawl.ErrClosed):
			s.to += requestTimeout(c.ttl)
		}
		if err != nil {
			s.to += h.w.setBack()
		}
	}
}

// setBack returns the time by which all faults together set the clocks of nodes back.
func (w *world) setBack() (by time.Duration) {
	for _, f := range w.plan.faults {
		if f.kind == "jump" && f.lasts < 0 {
			by -= f.lasts
		}
	}
	return by
}

// maxWait is more than the longest possible wait, so that the checker finds a wait that
// never ends.
func (w *world) maxWait() time.Duration {
	total := max(w.faultFreeFrom()-w.now(), 0) + time.Minute
	for _, p := range w.plan.processes {
		for _, steps := range p.sessions {
			for _, s := range steps {
				total += s.after + max(s.hold, 0) + 2*s.ttl + s.delay + s.minHold + 5*time.Second + s.lasts(w.plan)
			}
		}
	}
	return total
}
