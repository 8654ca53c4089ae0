package sim

import (
	"slices"
	"strings"
)

// meets is the rule of exclusion. It is checked in the instant of each grant, because
// only then can a call begin to believe in a lease. The calls that hold the name, and do
// not know of a loss, together weigh no more than the limit. A holder that has lost the
// name learned of that before.
func (h *history) meets(c *call) {
	h.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(h.holds), func(o *call) bool { return o.name != c.name })
	h.holds = append(h.holds, c)
	h.mu.Unlock()

	believe, untold := []*call{c}, []*call(nil)
	for _, o := range others {
		told := isClosed(o.done)
		believes := o.believes() // it may call the history
		h.mu.Lock()
		now := h.w.now()
		excused := h.excusedLocked(o, now) || h.excusedLocked(c, now)
		switch {
		case o.left != never || excused:
		case believes:
			believe = append(believe, o)
		case !told:
			untold = append(untold, o)
		}
		h.mu.Unlock()
	}
	switch {
	case !together(believe):
		h.w.violated(c.name, "they hold it at once: %s", list(believe))
	case !together(append(untold, believe...)):
		h.w.violated(c.name, "%v was granted beside %s before all of these were told that they had lost it: %s", c, list(believe[1:]), list(untold))
	}
}

func list(calls []*call) string {
	var all []string
	for _, c := range calls {
		all = append(all, c.String())
	}
	return strings.Join(all, " and ")
}

// forgetLocked removes a call from those that believe to hold.
func (h *history) forgetLocked(c *call) {
	h.holds = slices.DeleteFunc(h.holds, func(o *call) bool { return o == c })
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
// not symmetric: each call has only its own limit. So a reader may come beside permits
// that would not have come beside a reader.
func (c *call) excludes(o *call) bool { return int64(c.weight)+int64(o.weight) > int64(c.limit) }

// together reports whether these calls can hold a name at the same time. There has to be
// an order in which each call fits within its own limit, beside all calls before it. A
// call that was shown before another began comes before it, and so does one with a
// smaller fence.
//
// The order is made from its end. Any call that can be the last one is taken: it needs
// the most room there, and leaves the most room to the others.
func together(holders []*call) bool {
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
func (c *call) precedes(o *call) bool { return c.believed < o.began || c.fence < o.fence }
