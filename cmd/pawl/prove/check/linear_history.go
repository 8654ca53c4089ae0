package check

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// nameHistory has the steps of a name on the server, with the times at which they may
// have happened.
type nameHistory struct {
	name     *name
	leases   []lease // in the order of their begins; step.lease is an index here
	refusals []step  // of tries
}

// lease is a granted claim, with the bounds of its begin and its end on the server.
type lease struct {
	claim              *history.Claim
	beginFrom, beginTo int64
	endFrom, endTo     int64
}

// newNameHistory orders the leases by their fences. Without fences it orders them by Got,
// as if each lease began then, and omits leases that may have ended before Got. Assuming
// a later begin cannot cause a violation, because it leaves more room for other leases.
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
	l.endTo = w.latestEnd(c)
	if c.Release == history.OK {
		l.endFrom, l.endTo = c.Released, c.Freed
	}
	if last := w.lastMoment(c); w.forgot(c, last) {
		// The server may have lost the lease before its holder learned of the grant.
		l.endFrom = c.Asked
		l.endTo = last + 2*w.Run.TTL + maxLateness
	}
	return l
}

// latestEnd returns the time after which the server has no lease or place of a claim. A
// client whose own clock says that the lease is over may release it without a request, so
// the lease then lasts longer.
func (w *world) latestEnd(c *history.Claim) int64 {
	if c.Release == history.Late {
		return w.goneBy(c) + 2*w.Run.TTL + maxLateness
	}
	return w.goneBy(c)
}

// refusals returns the refused tries that only a lease can explain. During such a try no
// other claim was pending, and no failed claim may have left a lease or a place.
func (w *world) refusals(n *name) []step {
	var refusals []step
	var explainedUntil int64 // an earlier claim may explain a refusal before this time
	for i, c := range n.claims {
		until := w.waitEnd(c)
		if c.Answer != history.Held && (c.Answer != history.Granted || !w.Run.Fenced && !lasted(c)) {
			until = w.latestEnd(c)
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
