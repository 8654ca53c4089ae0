package drivertest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"pgregory.net/rapid"
)

// compareEntries requires that both drivers show the same names. It runs before the first
// operation and after each.
func (r *randomCase) compareEntries(t *rapid.T) {
	for _, name := range r.names {
		got, err := r.k.eitherClient(t).Inspect(r.k.ctx, name)
		want, _ := r.oracle.Inspect(r.k.ctx, name)
		if err != nil {
			t.Fatalf("Inspect: %v", err)
		}
		if g, w := r.describe(got), r.describe(want); g != w {
			t.Fatalf("Inspect of %q shows\n%s\nwant\n%s", name, g, w)
		}
		if _, known := r.findFence(name, want.ValueFence); want.Value != nil && (known || !r.k.suite.NodeClocksDiffer) {
			r.wantSameOrder(t, name, fencePair{got.ValueFence, want.ValueFence})
		}
		for i := range want.Holders {
			if _, known := r.findFence(name, want.Holders[i].Fence); known || !r.k.suite.NodeClocksDiffer {
				r.wantSameOrder(t, name, fencePair{got.Holders[i].Fence, want.Holders[i].Fence})
			}
		}
	}
}

// describe returns the part of an entry that must be equal. It omits fences:
// compareEntries checks their order, except of the last fence, which may be forgotten.
func (r *randomCase) describe(e driver.Entry) string {
	s := fmt.Sprintf("  closed for %s\n  value %q, none: %v", r.roundTime(e.ClosedFor), e.Value, e.Value == nil)
	if r.k.suite.NodeClocksDiffer {
		slices.SortFunc(e.Holders, func(a, b driver.Holder) int { return cmp.Compare(a.Owner.Client, b.Owner.Client) })
	}
	for _, h := range e.Holders {
		s += fmt.Sprintf("\n  held by %s, %d of %d, for %s, released %v", h.Owner.Client, h.Permits, h.Limit, r.roundTime(h.ExpiresIn), h.Released)
		if !r.k.suite.IsQuorum {
			s += fmt.Sprintf(", TTL %v", h.TTL)
		}
	}
	for _, w := range e.Waiters {
		s += fmt.Sprintf("\n  waited for by %s, %d of %d, for %s", w.Owner.Client, w.Permits, w.Limit, r.roundTime(w.ExpiresIn))
	}
	return s
}

// roundTime rounds a time to the unit, unless the clock is injected.
func (r *randomCase) roundTime(d time.Duration) string {
	if r.k.suite.Clock == nil {
		d = d.Round(r.unit)
	}
	return d.String()
}

// wantSame requires answers of the same kind, and refusals with the same reasons.
func (r *randomCase) wantSame(t *rapid.T, what string, got, want error) {
	t.Helper()
	g, w := r.kindOf(got), r.kindOf(want)
	t.Logf("%s: %s", what, g)
	if g != w {
		mark := ""
		if what == "Acquire" && got == nil {
			mark = "VIOLATION: " // a grant that memlock refuses
		}
		t.Fatalf("%s%s: %s (%v)\nmemlock: %s (%v)", mark, what, g, got, w, want)
	}
	var gotHeld, wantHeld *driver.HeldError
	if !errors.As(got, &gotHeld) || !errors.As(want, &wantHeld) {
		return
	}
	if last := r.highest[gotHeld.Name]; gotHeld.Fence < last {
		t.Fatalf("%s: HeldError.Fence is %d, and %d was granted", what, gotHeld.Fence, last)
	}
	if !r.k.suite.NodeClocksDiffer {
		r.wantSameOrder(t, gotHeld.Name, fencePair{gotHeld.Fence, wantHeld.Fence})
	}
	if d := gotHeld.Holder.ExpiresIn; d != wantHeld.Holder.ExpiresIn && r.k.suite.Clock != nil {
		t.Fatalf("%s: the first holder ends in %v, memlock: %v", what, d, wantHeld.Holder.ExpiresIn)
	}
	if d := gotHeld.RetryAfter; d != wantHeld.RetryAfter && d != 0 && r.k.suite.Clock != nil {
		t.Fatalf("%s: RetryAfter = %v, memlock: %v", what, d, wantHeld.RetryAfter)
	}
}

func (r *randomCase) kindOf(err error) string {
	var held *driver.HeldError
	var broken *driver.BrokenError
	var refused *driver.ValueNotBelowError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &held):
		return fmt.Sprintf("held by %d, place %d, closed for %s", held.Holders, held.Position, r.roundTime(held.ClosedFor))
	case errors.As(err, &refused):
		return fmt.Sprintf("refused for the value %q", refused.Value)
	case errors.As(err, &broken):
		return fmt.Sprintf("broken by %s, closed for %s", broken.By.Client, r.roundTime(broken.ClosedFor))
	case errors.Is(err, driver.ErrNoSuchLease):
		return "not held"
	default:
		return err.Error()
	}
}

// wantSameOrder requires that the fences of a name are equal, or at least in the same
// order on both sides.
func (r *randomCase) wantSameOrder(t *rapid.T, name string, p fencePair) {
	t.Helper()
	r.fencesEqual = r.fencesEqual && (!r.k.suite.IsQuorum || p.got <= p.want)
	if r.fencesEqual && p.got != p.want {
		t.Fatalf("fence %d, want %d", p.got, p.want)
	}
	known := r.fences[name]
	at, found := r.findFence(name, p.want)
	switch {
	case found && known[at].got != p.got:
		t.Fatalf("fence %d, and earlier %d for the same grant", p.got, known[at].got)
	case found:
		return
	case r.k.suite.NodeClocksDiffer:
		for _, other := range known {
			if other.got == p.got {
				t.Fatalf("VIOLATION: fence %d, which another claim has got", p.got)
			}
		}
	case at > 0 && known[at-1].got >= p.got:
		t.Fatalf("VIOLATION: fence %d does not come after %d", p.got, known[at-1].got)
	case at < len(known) && known[at].got <= p.got:
		t.Fatalf("VIOLATION: fence %d does not come before %d", p.got, known[at].got)
	}
	r.fences[name] = slices.Insert(known, at, p)
}

// findFence finds the pair with the oracle's fence, or its place in the list.
func (r *randomCase) findFence(name string, want uint64) (at int, found bool) {
	return slices.BinarySearchFunc(r.fences[name], want, func(k fencePair, want uint64) int { return cmp.Compare(k.want, want) })
}
