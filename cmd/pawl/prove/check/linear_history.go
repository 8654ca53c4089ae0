package check

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// nameHistory has the steps that happened to a name on the server, and the times at which
// they may have happened.
type nameHistory struct {
	name     *name
	leases   []lease // in the order in which they began; a step of a lease has its index
	refusals []step  // of tries
}

// lease is a granted claim: it began and ended on the server within these times.
type lease struct {
	claim              *history.Claim
	beginFrom, beginTo int64
	endFrom, endTo     int64
}

// newNameHistory orders the leases by their fences. Without fences it orders them by the
// times when their holders learned of them, and leaves out leases that may have ended
// before. It then assumes that each lease began at that time. That does no harm, because
// a lease that begins later leaves more room for the others.
func (w *world) newNameHistory(n *name) *nameHistory {
	s := &nameHistory{name: n}
	for _, c := range n.granted {
		if w.Run.Fenced || lasted(c) {
			s.leases = append(s.leases, w.lease(c))
		}
	}
	slices.SortStableFunc(s.leases, func(a, b lease) int {
		if w.Run.Fenced {
			return cmp.Compare(a.claim.Fence, b.claim.Fence)
		}
		return cmp.Or(cmp.Compare(a.claim.Got, b.claim.Got), cmp.Compare(a.endFrom, b.endFrom))
	})
	s.refusals = w.refusals(n)
	return s
}

// lasted reports whether a lease certainly lasted until its holder learned of it.
func lasted(c *history.Claim) bool { return wasSure(c) || c.Release == history.OK }

// lease returns the times between which the lease of a granted claim may have begun and
// ended.
func (w *world) lease(c *history.Claim) lease {
	l := lease{claim: c, beginFrom: c.Asked, beginTo: c.Got, endFrom: c.Asked}
	if wasSure(c) {
		l.endFrom = c.Believed
	}
	l.endTo = w.ended(c)
	if c.Release == history.OK {
		l.endFrom, l.endTo = c.Released, c.Freed
	}
	if last := w.lastMoment(c); w.forgot(c, last) {
		// It may have ended before its holder knew of it, when the server lost it.
		l.endFrom = c.Asked
		l.endTo = last + 2*w.Run.TTL + maxLateness
	}
	return l
}

// ended returns the time after which nothing of a claim is on the server. A client whose
// own clock says that the lease is over may release without a request to the server, so
// the lease may last longer.
func (w *world) ended(c *history.Claim) int64 {
	if c.Release == history.Late {
		return w.gone(c) + 2*w.Run.TTL + maxLateness
	}
	return w.gone(c)
}

// refusals returns the refused tries that only a lease can explain: no other claim was
// pending, and no claim that failed may have left something.
func (w *world) refusals(n *name) []step {
	var refusals []step
	var explainedUntil int64 // until then, an earlier claim may explain a refusal
	for i, c := range n.claims {
		until := w.waitEnd(c)
		if c.Answer != history.Held && (c.Answer != history.Granted || !w.Run.Fenced && !lasted(c)) {
			until = w.ended(c)
		}
		isAlone := explainedUntil < c.Asked && (i+1 == len(n.claims) || n.claims[i+1].Asked > c.Answered)
		explainedUntil = max(explainedUntil, until)
		if c.Answer != history.Held || c.How != history.Try || !isAlone {
			continue
		}
		if w.dataLosses.touched(server, c.Asked-3*w.Run.TTL-maxLateness, c.Answered) {
			continue
		}
		refusals = append(refusals, step{kind: tryRefused, claim: c, from: c.Asked, to: c.Answered})
	}
	return refusals
}
