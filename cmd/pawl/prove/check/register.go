package check

import (
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// registerState is the correct state of a register, computed from its accepted writes
// alone.
type registerState struct {
	value  uint64
	newest *history.Write // the write with the greatest fence that was not refused as stale
	plain  *history.Claim // the claim of the last write to the register that checks no fences
}

// register computes what the register of each name should have after each write, and
// finds where the history says something else. It finds writes that the register accepted
// although a newer holder had used it.
func (w *world) register() {
	states := map[string]*registerState{}
	begun, _, _ := w.Phase(history.Calm) // claims from before the calm phase meet slow processes
	untouched := func(c *history.Claim, t int64) bool { return !w.touchedClaim(c, c.Asked-settleTime, t) }
	for _, x := range w.Writes {
		c, n := w.byID[x.Claim], w.byName[x.Name]
		if n == nil || c == nil || c.Name != x.Name {
			w.wrong(Register, x, c, "It belongs to claim %d, and the history has no such claim of %q.", x.Claim, x.Name)
			continue
		}
		if c.Answer == history.Granted && w.Run.Fenced && c.Fence != x.Fence {
			w.wrong(Register, x, c, "It came with the fence %d, but the claim was granted with the fence %d.", x.Fence, c.Fence)
		}
		s := states[x.Name]
		if s == nil {
			s = &registerState{}
			states[x.Name] = s
		}
		w.fenced(s, x, c)
		w.value(s, x, c)
		before := s.plain // the late write may be the one before x
		s.plain = c
		// Without fences no lock can stop a late write. Without a fault no write is late.
		if x.PlainRead == x.PlainBefore || !n.alone(c) {
			continue
		}
		w.Numbers.PlainLost++
		if c.Asked >= begun && x.At < w.firstFault && untouched(c, x.At) && (before == nil || untouched(before, x.At)) {
			w.wrong(PlainLostInCalm, x, c, "The holder had read %d and the register that checks no fences had %d, so that an update is lost. No fault had begun.",
				x.PlainRead, x.PlainBefore)
		}
	}
}

// fenced checks the fence of a write.
func (w *world) fenced(s *registerState, x *history.Write, c *history.Claim) {
	switch {
	case x.Stale:
		w.Numbers.Stale++
	case s.newest == nil || x.Fence >= s.newest.Fence:
		s.newest = x
	case x.Accepted && w.Run.Fenced:
		w.wrong(StaleAccepted, x, c, "It has the fence %d. Claim %d had used the register before it, at %s, with the greater fence %d.",
			x.Fence, s.newest.Claim, at(s.newest.At), s.newest.Fence)
	}
}

// value checks the number of the register that checks fences.
func (w *world) value(s *registerState, x *history.Write, c *history.Claim) {
	if x.Before != s.value && (x.Accepted || !x.Stale) {
		w.wrong(Register, x, c, "The register had %d then, and its accepted writes add up to %d.", x.Before, s.value)
		s.value = x.Before
	}
	if !x.Accepted {
		if !x.Stale && w.Run.Fenced && c.Mode == history.Whole {
			w.wrong(Register, x, c, "The register had changed from %d to %d since the holder had read it, though no newer holder had used it.",
				x.Read, x.Before)
		}
		return
	}
	w.Numbers.Writes++
	if x.Read != x.Before && w.Run.Fenced {
		w.wrong(Register, x, c, "The holder had read %d and the register had %d, so that an update is lost.", x.Read, x.Before)
	}
	s.value = x.Read + 1
}

// wrong reports a write.
func (w *world) wrong(rule string, x *history.Write, c *history.Claim, what string, args ...any) {
	by, did := fmt.Sprintf("Claim %d", x.Claim), "wrote to"
	if c != nil {
		by = upper{c}.String()
	}
	if !x.Accepted {
		did = "tried to write to"
	}
	w.add(Violation{Rule: rule, Name: x.Name, From: x.At, To: x.At, Claims: []int64{x.Claim}},
		"%s %s the register of %q at %s. "+what, append([]any{by, did, x.Name, at(x.At)}, args...)...)
}
