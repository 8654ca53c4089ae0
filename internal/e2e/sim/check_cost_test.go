package sim

import "time"

// checkCosts limits the number of requests of each process, over a whole schedule:
//
//   - a claim asks once, and again: after a third of its QueueTTL or up to an eighth
//     earlier, for each signal, when a holder would expire, and after a failure
//   - a lease is renewed after a third of its TTL, checked for each signal, and renewed
//     again after a failure
//   - a claim is released once, or once more after the end of a request without an
//     answer, and again after a failure
func (h *history) checkCosts() {
	for _, p := range h.w.processes {
		t := p.tap
		t.mu.Lock()
		claims, waited, held := 0, time.Duration(0), time.Duration(0)
		for _, c := range h.calls {
			if c.process != p || c.verb == "break" || c.verb == "look" || c.verb == "leader" || c.verb == "watch" {
				continue
			}
			claims += 1 + c.confirms + len(c.others)
			if c.detaches {
				claims++
			}
			waited += max(c.answered, c.believedFrom) - c.began
			if c.verb == "all" { // it waits while it holds others
				held += max(c.answered, c.believedFrom) - c.began
			}
			if c.granted {
				held += max(c.releaseBegan, c.lossSeen, c.believedFrom) - c.believedFrom
			}
		}
		each := h.w.plan.baseTTL / 4
		most := func(n int, d time.Duration) int { return 4*n + 2*int(d/each) + 2*t.signals + 2*t.failed + 10 }
		for _, kind := range []struct {
			what       string
			made, most int
		}{
			{"acquire", t.acquires, most(claims, waited) + h.expiries(waited)},
			{"renew", t.renewals, most(claims, held)},
			{"release", t.releases, most(claims, 0)},
		} {
			if kind.made > kind.most {
				h.violatedLocked("", "process %d made %d requests to %s, but %d are enough for %d claims that waited %v and held %v",
					p.number, kind.made, kind.what, kind.most, claims, waited, held)
			}
		}
		t.mu.Unlock()
	}
}

// expiries returns how often clients poll because a holder would have expired by then.
func (h *history) expiries(waited time.Duration) int {
	n := len(h.calls) + int(waited/(h.w.plan.baseTTL/8))
	switch h.w.plan.backend {
	case "quorum":
		n += int(waited / (5 * time.Millisecond)) // while another claim has a node that the holder does not have
	case "redis":
		n += 10 + int(waited/(125*time.Millisecond)) // clients poll while the subscription is down
	}
	return n
}
