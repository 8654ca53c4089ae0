package sim

import (
	"errors"

	"github.com/pawl-go/pawl"
)

// told counts the events of one claim that the Observer received.
type told struct {
	name                              string
	acquired, refused, released, lost int
}

// observer returns an Observer that counts its events.
func (p *process) observer() *pawl.Observer {
	o := &pawl.Observer{
		Acquired:    func(e pawl.AcquiredEvent) { p.tap.tells(e.Event, func(t *told) { t.acquired++ }) },
		NotAcquired: func(e pawl.NotAcquiredEvent) { p.tap.tells(e.Event, func(t *told) { t.refused++ }) },
		Released:    func(e pawl.ReleasedEvent) { p.tap.tells(e.Event, func(t *told) { t.released++ }) },
		Lost:        func(e pawl.LostEvent) { p.tap.tells(e.Event, func(t *told) { t.lost++ }) },
	}
	if spoil := p.w.planted.observe; spoil != nil {
		spoil(o)
	}
	return o
}

func (t *tap) tells(e pawl.Event, note func(*told)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.told[e.Claim]
	if of == nil {
		of = &told{name: e.Name}
		t.told[e.Claim] = of
	}
	note(of)
}

// pairs is the rule of the Observer, after the clients are closed. It gets exactly one
// event for every claim, acquired or refused. Every acquired lease ends with exactly one
// event, released or lost.
func (h *history) pairs() {
	for _, p := range h.w.processes {
		t := p.tap
		granted := 0
		for _, c := range h.calls {
			if c.process == p && (c.granted || c.do && errors.Is(c.err, pawl.ErrLost)) { // lost before Do began
				granted++
			}
		}
		t.mu.Lock()
		acquired := 0
		for _, of := range t.told {
			acquired += of.acquired
			again := h.w.plan.features && of.acquired > 1 // a detached lease was attached in its own process
			if of.acquired+of.refused != 1 && !again || of.released+of.lost != of.acquired {
				h.violatedLocked(of.name, "the Observer of process %d was told of one claim: %d times acquired, %d refused, %d released, %d lost",
					p.number, of.acquired, of.refused, of.released, of.lost)
			}
		}
		if acquired != granted && !h.w.plan.features { // All reports also leases that it gives back
			h.violatedLocked("", "process %d was granted %d leases, and its Observer was told of %d", p.number, granted, acquired)
		}
		t.mu.Unlock()
	}
}
