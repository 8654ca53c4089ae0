package check

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// class has the properties of a claim that decide which other claims can be held at the
// same time.
type class struct {
	mode   string
	weight int
}

func classOf(c *history.Claim) class { return class{c.Mode, c.Weight} }

// excludes reports whether two claims of a name cannot be held at the same time.
func (n *name) excludes(a, b *history.Claim) bool {
	switch {
	case a.Mode == history.Whole || b.Mode == history.Whole:
		return true
	case a.Mode == history.Permits && b.Mode == history.Permits:
		return a.Weight+b.Weight > n.Limit
	}
	return false
}

// conflicting returns the holders that conflict with a claim. If too few permits are free
// for the claim, all holders of permits conflict with it.
func (n *name) conflicting(holders []*history.Claim, c *history.Claim) (all []*history.Claim) {
	free := n.Limit
	for _, h := range holders {
		if h.Mode == history.Permits {
			free -= h.Weight
		}
	}
	for _, h := range holders {
		if n.excludes(h, c) || h.Mode == history.Permits && c.Mode == history.Permits && c.Weight > free {
			all = append(all, h)
		}
	}
	return all
}

// isExclusive reports whether a claim excludes all other holders of the name.
func (n *name) isExclusive(c *history.Claim) bool {
	return c.Mode == history.Whole || c.Mode == history.Permits && c.Weight >= n.Limit
}

// wasSure reports whether the holder of a granted claim was sure for some time.
func wasSure(c *history.Claim) bool { return c.Believed > c.Got }

// waitEnd returns the time at which a claim stopped waiting: its answer, the death of its
// process, or the end of the history.
func (w *world) waitEnd(c *history.Claim) int64 {
	switch {
	case c.Answered != 0:
		return c.Answered
	case c.Died != 0:
		return c.Died
	}
	return w.Last
}

// lastMoment returns the last time at which the client of a claim may have sent a request
// for it.
func (w *world) lastMoment(c *history.Claim) int64 {
	switch {
	case c.Freed != 0:
		return c.Freed
	case c.Died != 0:
		return c.Died
	case c.Answer != history.Granted:
		return w.waitEnd(c)
	case c.Lost != 0:
		return max(c.Lost, c.Woken, c.Believed)
	}
	return w.Last
}

// maxLateness is the longest time after which the server handles a request that its
// client has given up, unless a fault delays it.
const maxLateness = int64(2 * time.Second)

// goneBy returns the time after which the server has no lease or place of a claim,
// because the claim was released or its lease has expired.
func (w *world) goneBy(c *history.Claim) int64 {
	last := w.lastMoment(c)
	switch {
	case c.Release == history.OK || c.Release == history.Late || c.Answer == history.Held:
		return last
	case w.gaveUp(c):
		return last + maxLateness/2
	}
	// Requests that the network held back arrive when the fault ends, or a little later.
	from := last - w.Run.TTL
	late := max(w.network.postpone(c.Worker, from, last, 0), w.faults.postpone(server, from, last, 0))
	if late > last {
		late += w.Run.TTL
	}
	return late + 2*w.Run.TTL + maxLateness
}

// gaveUp reports whether a claim was given up while no fault delayed it. The server soon
// removes the place of such a claim.
func (w *world) gaveUp(c *history.Claim) bool {
	return c.Answer == history.TimedOut && c.Answered != 0 && !w.touchedClaim(c, c.Asked, c.Answered+maxLateness)
}

// sameClient reports whether one client of one process made both claims.
func sameClient(a, b *history.Claim) bool {
	return a.Worker == b.Worker && a.Life == b.Life && a.Client == b.Client
}
