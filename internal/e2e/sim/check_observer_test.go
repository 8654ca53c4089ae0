package sim

import (
	"errors"

	"github.com/pawl-go/pawl"
)

// eventCounts counts the events of one claim that the Observer received.
type eventCounts struct {
	name                              string
	acquired, refused, released, lost int
}

// observer returns an Observer that counts its events.
func (p *process) observer() *pawl.Observer {
	o := &pawl.Observer{
		Acquired:    func(e pawl.AcquiredEvent) { p.tap.countEvent(e.Event, func(t *eventCounts) { t.acquired++ }) },
		NotAcquired: func(e pawl.NotAcquiredEvent) { p.tap.countEvent(e.Event, func(t *eventCounts) { t.refused++ }) },
		Released:    func(e pawl.ReleasedEvent) { p.tap.countEvent(e.Event, func(t *eventCounts) { t.released++ }) },
		Lost:        func(e pawl.LostEvent) { p.tap.countEvent(e.Event, func(t *eventCounts) { t.lost++ }) },
	}
	if spoil := p.w.planted.observe; spoil != nil {
		spoil(o)
	}
	return o
}

func (t *tap) countEvent(e pawl.Event, note func(*eventCounts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts[e.Claim]
	if counts == nil {
		counts = &eventCounts{name: e.Name}
		t.counts[e.Claim] = counts
	}
	note(counts)
}

// checkObservers: an Observer gets exactly one event for every claim, acquired or
// refused, and exactly one event for the end of every acquired lease, released or lost.
func (h *history) checkObservers() {
	for _, p := range h.w.processes {
		t := p.tap
		granted := 0
		for _, c := range h.calls {
			if c.process == p && (c.granted || c.usesDo && errors.Is(c.err, pawl.ErrLost)) { // lost before Do began
				granted++
			}
		}
		t.mu.Lock()
		acquired := 0
		for _, counts := range t.counts {
			acquired += counts.acquired
			again := h.w.plan.features && counts.acquired > 1 // a detached lease was attached by its own process
			if counts.acquired+counts.refused != 1 && !again || counts.released+counts.lost != counts.acquired {
				h.violatedLocked(counts.name, "the Observer of process %d got for one claim: %d times acquired, %d refused, %d released, %d lost",
					p.number, counts.acquired, counts.refused, counts.released, counts.lost)
			}
		}
		if acquired != granted && !h.w.plan.features { // All has events of the leases that it gives back
			h.violatedLocked("", "process %d was granted %d leases, and its Observer got %d", p.number, granted, acquired)
		}
		t.mu.Unlock()
	}
}
