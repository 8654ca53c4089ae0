package sim

import (
	"cmp"
	"slices"
	"strings"
)

// meets is the rule of exclusion, looked at in the instant of each grant: only then can
// anybody come to believe in a lease. Those who hold the name and have not been told
// otherwise may weigh no more than the limit, and who has lost it was told before.
func (h *history) meets(c *call) {
	h.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(h.holds), func(o *call) bool { return o.name != c.name })
	h.holds = append(h.holds, c)
	h.mu.Unlock()

	holders, names := []*call{c}, []string{c.String()}
	for _, o := range others {
		told := isClosed(o.done)
		believes := o.believes() // it may call back into the history
		h.mu.Lock()
		now := h.w.now()
		excused := h.excused(o, now) || h.excused(c, now)
		switch {
		case o.left != never || excused:
		case believes:
			holders = append(holders, o)
			names = append(names, o.String())
		case !told && c.excludes(o) && o.excludes(c):
			h.violated(c.name, "%v was granted before %v was told that it had lost it", c, o)
		}
		h.mu.Unlock()
	}
	if !together(holders) {
		h.w.violated(c.name, "they hold it at once: %s", strings.Join(names, " and "))
	}
}

// forget takes a call out of those that believe. The caller holds the mutex.
func (h *history) forget(c *call) {
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
// no symmetry: each is held to its own limit only, so a reader may come beside permits that
// would not have come beside a reader.
func (c *call) excludes(o *call) bool { return int64(c.weight)+int64(o.weight) > int64(c.limit) }

// together reports whether these can hold a name at once: there has to be an order in which
// each found room within its own limit. Those with the smallest limits come first; but the
// one that was shown last is the last, if it was asked for when all others were shown.
func together(holders []*call) bool {
	last := holders[0]
	slices.SortStableFunc(holders, func(a, b *call) int { return cmp.Compare(a.limit, b.limit) })
	if !slices.ContainsFunc(holders, func(o *call) bool { return o != last && o.believed >= last.began }) {
		holders = append(slices.DeleteFunc(holders, func(o *call) bool { return o == last }), last)
	}
	sum := int64(0)
	for _, o := range holders {
		if sum += int64(o.weight); sum > int64(o.limit) {
			return false
		}
	}
	return true
}
