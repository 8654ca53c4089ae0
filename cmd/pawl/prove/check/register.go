package check

import (
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// registerState is the correct state of a register, computed only from its accepted
// writes.
type registerState struct {
	value  uint64
	newest *history.Write // the write with the greatest fence that was not refused as stale
	plain  *history.Claim // the claim of the last write to the register that checks no fences
}

// register computes the correct number of each register after each write, and reports
// where the history differs. It also reports writes that a register accepted after a
// write with a greater fence.
func (w *world) register() {
	states := map[string]*registerState{}
	begun, _, _ := w.Phase(history.Calm) // processes are slow before the calm phase
	untouched := func(c *history.Claim, t int64) bool { return !w.touchedClaim(c, c.Asked-settleTime, t) }
	for _, x := range w.Writes {
		c, n := w.byID[x.Claim], w.byName[x.Name]
		if n == nil || c == nil || c.Name != x.Name {
			w.addWrongWrite(Register, x, c, "It belongs to claim %d, but the history has no such claim of %q.", x.Claim, x.Name)
			continue
		}
		if c.Answer == history.Granted && w.Run.Fenced && c.Fence != x.Fence {
			w.addWrongWrite(Register, x, c, "It came with the fence %d, but the claim was granted with the fence %d.", x.Fence, c.Fence)
		}
		s := states[x.Name]
		if s == nil {
			s = &registerState{}
			states[x.Name] = s
		}
		w.checkFence(s, x, c)
		w.checkValue(s, x, c)
		before := s.plain // if an update is lost, the write of this claim or x was late
		s.plain = c
		// Without fences no lock can stop a late write. Without a fault no write is late.
		if x.PlainRead == x.PlainBefore || !n.isExclusive(c) {
			continue
		}
		w.Numbers.PlainLost++
		if c.Asked >= begun && x.At < w.firstFault && untouched(c, x.At) && (before == nil || untouched(before, x.At)) {
			w.addWrongWrite(PlainLostInCalm, x, c, "The holder had read %d but the register that checks no fences had %d, so an update is lost. No fault had begun.",
				x.PlainRead, x.PlainBefore)
		}
	}
}

// checkFence checks the fence of a write.
func (w *world) checkFence(s *registerState, x *history.Write, c *history.Claim) {
	switch {
	case x.Stale:
		w.Numbers.Stale++
	case s.newest == nil || x.Fence >= s.newest.Fence:
		s.newest = x
	case x.Accepted && w.Run.Fenced:
		w.addWrongWrite(StaleAccepted, x, c, "It has the fence %d. Claim %d had used the register before it, at %s, with the greater fence %d.",
			x.Fence, s.newest.Claim, at(s.newest.At), s.newest.Fence)
	}
}

// checkValue checks the number of the register that checks fences.
func (w *world) checkValue(s *registerState, x *history.Write, c *history.Claim) {
	if x.Before != s.value && (x.Accepted || !x.Stale) {
		w.addWrongWrite(Register, x, c, "The register had %d then, but its accepted writes add up to %d.", x.Before, s.value)
		s.value = x.Before
	}
	if !x.Accepted {
		if !x.Stale && w.Run.Fenced && c.Mode == history.Whole {
			w.addWrongWrite(Register, x, c, "The register had changed from %d to %d since the holder had read it, although no newer holder had used it.",
				x.Read, x.Before)
		}
		return
	}
	w.Numbers.Writes++
	if x.Read != x.Before && w.Run.Fenced {
		w.addWrongWrite(Register, x, c, "The holder had read %d but the register had %d, so an update is lost.", x.Read, x.Before)
	}
	s.value = x.Read + 1
}

func (w *world) addWrongWrite(rule string, x *history.Write, c *history.Claim, what string, args ...any) {
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
