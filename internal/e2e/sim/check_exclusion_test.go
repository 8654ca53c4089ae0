package sim

import (
	"slices"
	"strings"
)

// checkExclusion checks the rule of exclusion at a grant, because only then can a call
// begin to believe that it holds the name. The weights of these calls add up to no more
// than the limit. A holder that has lost the name has been notified before the grant.
func (h *history) checkExclusion(c *call) {
	h.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(h.holders), func(o *call) bool { return o.name != c.name })
	h.holders = append(h.holders, c)
	h.mu.Unlock()

	believers, unnotified := []*call{c}, []*call(nil)
	for _, o := range others {
		notified := isClosed(o.done)
		believes := o.believes() // without h.mu, which it may lock
		h.mu.Lock()
		now := h.w.now()
		excused := h.excusedLocked(o, now) || h.excusedLocked(c, now)
		switch {
		case o.releaseBegan != never || excused:
		case believes:
			believers = append(believers, o)
		case !notified:
			unnotified = append(unnotified, o)
		}
		h.mu.Unlock()
	}
	switch {
	case !canHoldTogether(believers):
		h.w.violated(c.name, "calls hold the name at the same time: %s", list(believers))
	case !canHoldTogether(append(unnotified, believers...)):
		h.w.violated(c.name, "%v was granted beside %s before all of these saw their loss: %s", c, list(believers[1:]), list(unnotified))
	}
}

func list(calls []*call) string {
	var all []string
	for _, c := range calls {
		all = append(all, c.String())
	}
	return strings.Join(all, " and ")
}

// forgetLocked removes a call from the calls that believe that they hold a lease.
func (h *history) forgetLocked(c *call) {
	h.holders = slices.DeleteFunc(h.holders, func(o *call) bool { return o == c })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// excludes reports whether a call cannot be granted while the other holds the name. It is
// not symmetric, because each call has only its own limit. So a reader may be granted
// beside permits, although these permits could not be granted beside the reader.
func (c *call) excludes(o *call) bool { return int64(c.weight)+int64(o.weight) > int64(c.limit) }

// canHoldTogether reports whether these calls can hold a name at the same time. There has
// to be an order in which each call fits within its own limit, beside all calls before
// it. If a call got its lease before another call began, or has a smaller fence, it comes
// first.
//
// The function finds the order from its end. It may choose any call that can be the last:
// a call needs the most room as the last one, and its removal leaves the most room to the
// others.
func canHoldTogether(holders []*call) bool {
	rest, sum := slices.Clone(holders), int64(0)
	for _, o := range rest {
		sum += int64(o.weight)
	}
	for len(rest) > 0 {
		last := slices.IndexFunc(rest, func(c *call) bool {
			return sum <= int64(c.limit) && !slices.ContainsFunc(rest, c.precedes)
		})
		if last < 0 {
			return false
		}
		sum -= int64(rest[last].weight)
		rest = slices.Delete(rest, last, last+1)
	}
	return true
}

// precedes reports whether a call was granted before another. Both hold the name.
func (c *call) precedes(o *call) bool { return c.believedFrom < o.began || c.fence < o.fence }
