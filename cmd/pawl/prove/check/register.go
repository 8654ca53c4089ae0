package check

import (
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// book is the correct state of a register, computed from its accepted writes alone.
type book struct {
	value  uint64
	newest *history.Write // the write with the greatest fence that was not refused as stale
	plain  *history.Claim // the claim of the last write to the register that checks no fences
}

// register computes what the register of each name should have after each write, and
// finds where the history says something else. It finds writes that the register accepted
// although a newer holder had used it.
func (w *world) register() {
	books := map[string]*book{}
	byName := map[string]*name{}
	for _, n := range w.names {
		byName[n.Name.Name] = n
		books[n.Name.Name] = &book{}
	}
	begun, _, _ := w.phase(history.Calm) // claims from before the calm phase meet slow processes
	for _, x := range w.writes {
		c, n := w.byID[x.Claim], byName[x.Name]
		if n == nil || c == nil || c.Name != x.Name {
			w.wrong(Register, x, c, fmt.Sprintf("It belongs to claim %d, and the history has no such claim of %q.", x.Claim, x.Name))
			continue
		}
		if c.Answer == history.Granted && w.run.Fenced && c.Fence != x.Fence {
			w.wrong(Register, x, c, fmt.Sprintf("It came with the fence %d, but the claim was granted with the fence %d.", x.Fence, c.Fence))
		}
		b := books[x.Name]
		w.fenced(b, x, c)
		w.value(b, x, c)
		before := b.plain // the late write may be the one before x
		b.plain = c
		w.plain(n, x, c, c.Asked >= begun && x.At < w.untouched && !w.touchedClaim(c, c.Asked-settled, x.At) &&
			(before == nil || !w.touchedClaim(before, before.Asked-settled, x.At)))
	}
}

// fenced looks at the fence of a write.
func (w *world) fenced(b *book, x *history.Write, c *history.Claim) {
	if x.Stale {
		w.numbers.Stale++
		return
	}
	if b.newest == nil || x.Fence >= b.newest.Fence {
		b.newest = x
		return
	}
	if !x.Accepted || !w.run.Fenced {
		return
	}
	w.wrong(StaleAccepted, x, c, fmt.Sprintf("It has the fence %d. Claim %d had used the register before it, at %s, with the greater fence %d.",
		x.Fence, b.newest.Claim, at(b.newest.At), b.newest.Fence))
}

// value looks at the number of the register that checks fences.
func (w *world) value(b *book, x *history.Write, c *history.Claim) {
	if x.Before != b.value && (x.Accepted || !x.Stale) {
		w.wrong(Register, x, c, fmt.Sprintf("The register had %d then, and its accepted writes add up to %d.", x.Before, b.value))
		b.value = x.Before
	}
	if !x.Accepted {
		if !x.Stale && w.run.Fenced && c.Mode == history.Whole {
			w.wrong(Register, x, c, fmt.Sprintf("The register had changed from %d to %d since the holder had read it, though no newer holder had used it.",
				x.Read, x.Before))
		}
		return
	}
	w.numbers.Writes++
	if x.Read != x.Before && w.run.Fenced {
		w.wrong(Register, x, c, fmt.Sprintf("The holder had read %d and the register had %d, so that an update is lost.", x.Read, x.Before))
	}
	b.value = x.Read + 1
}

// plain checks the register that does not check fences. Without fences no lock can stop a
// late write. But without a fault no write is late.
func (w *world) plain(n *name, x *history.Write, c *history.Claim, untouched bool) {
	if x.PlainRead == x.PlainBefore || !n.alone(c) {
		return
	}
	w.numbers.PlainLost++
	if untouched {
		w.wrong(PlainLostInCalm, x, c, fmt.Sprintf("The holder had read %d and the register that checks no fences had %d, so that an update is lost. No fault had begun.",
			x.PlainRead, x.PlainBefore))
	}
}

// wrong reports a write.
func (w *world) wrong(rule string, x *history.Write, c *history.Claim, what string) {
	if w.full(rule, x.Name) {
		return
	}
	by := fmt.Sprintf("Claim %d", x.Claim)
	if c != nil {
		by = upper(c)
	}
	did := "wrote to"
	if !x.Accepted {
		did = "tried to write to"
	}
	w.add(Violation{
		Rule: rule, Name: x.Name, From: x.At, To: x.At, Claims: []int64{x.Claim},
		Text: fmt.Sprintf("%s %s the register of %q at %s. %s", by, did, x.Name, at(x.At), what),
	})
}
