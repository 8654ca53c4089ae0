package check

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The margins of the order.
const (
	// A claim that was asked for this much earlier reached the queue first.
	askMargin = int64(time.Second)

	// The server may have made the earlier of two grants although its waiter saw it this
	// much later. If two claims hold side by side, no release lies between their grants.
	// Then the limit is askMargin.
	grantMargin = int64(100 * time.Millisecond)

	// A fault that ended this long before a claim was asked for has no effect on it.
	settleTime = int64(500 * time.Millisecond)
)

// order finds claims that were served before a claim that had asked earlier. It compares
// only claims of one kind, and only of clients without another claim of the name, because
// a client may pass a lease on among its own waiters.
func (w *world) order(n *name) {
	if !w.Run.Ordered {
		return
	}
	waits := map[class][]*history.Claim{}
	var classes []class
	behind := w.behindOwn(n)
	for _, c := range n.claims {
		if c.How != history.Wait && c.How != history.Lead || behind[c] {
			continue
		}
		k := classOf(c)
		if waits[k] == nil {
			classes = append(classes, k)
		}
		waits[k] = append(waits[k], c)
	}
	for _, k := range classes {
		w.orderOf(n, waits[k])
	}
}

// behindOwn returns the claims that may have waited behind another claim of the same
// client that waited for the name or held it. If two were asked for at about the same
// time, the second may have entered the client's own queue first. Then it was over first.
func (w *world) behindOwn(n *name) map[*history.Claim]bool {
	type client struct{ worker, life, client int }
	type busy struct {
		until int64            // until when an earlier claim of the client is there
		near  []*history.Claim // its claims until now
	}
	clients := map[client]busy{}
	behind := map[*history.Claim]bool{}
	for _, c := range n.claims {
		k := client{c.Worker, c.Life, c.Client}
		b, ok := clients[k]
		if ok && b.until >= c.Asked {
			behind[c] = true
		}
		for i := len(b.near) - 1; i >= 0 && b.near[i].Asked+askMargin >= c.Asked; i-- {
			x := b.near[i]
			if c.Answer != history.Held && w.waitEnd(x) >= c.Asked && (c.How == history.All || w.waitEnd(c) < w.waitEnd(x)) {
				behind[x] = true
			}
		}
		if last := w.lastMoment(c); !ok || last > b.until {
			b.until = last
		}
		b.near = append(b.near, c)
		clients[k] = b
	}
	return behind
}

// orderOf compares claims of one class, which are in the order of Asked.
func (w *world) orderOf(n *name, claims []*history.Claim) {
	served := slices.DeleteFunc(slices.Clone(claims), func(c *history.Claim) bool { return c.Answer != history.Granted })
	// Count the pairs in which the queue could have been wrong.
	for x, y := range w.waiting(claims, served, func(y *history.Claim) int64 { return y.Asked }) {
		if x.Answer == history.Granted && w.comparable(x, y) {
			w.Numbers.QueuePairs++
		}
	}
	// Find the pairs in which it was wrong.
	slices.SortStableFunc(served, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	for x, y := range w.waiting(claims, served, func(y *history.Claim) int64 { return y.Got + grantMargin }) {
		grace := grantMargin
		if !n.excludes(x, y) {
			grace = askMargin
		}
		if w.waitEnd(x) > y.Got+grace && w.comparable(x, y) && !w.stops.touched(x.Worker, y.Got, y.Got+grace) {
			w.passed(n, x, y)
		}
	}
}

// waiting yields the pairs of a claim x that was asked for much earlier than the claim y,
// and that still waited at a time of y. These times ascend.
func (w *world) waiting(claims, served []*history.Claim, time func(y *history.Claim) int64) iter.Seq2[*history.Claim, *history.Claim] {
	return func(yield func(x, y *history.Claim) bool) {
		var waiting []*history.Claim
		for _, y := range served {
			t := time(y)
			for ; len(claims) > 0 && claims[0].Asked+askMargin < t; claims = claims[1:] {
				waiting = append(waiting, claims[0])
			}
			waiting = slices.DeleteFunc(waiting, func(x *history.Claim) bool { return w.waitEnd(x) <= t })
			for _, x := range waiting {
				if x.Asked+askMargin < y.Asked && !yield(x, y) {
					return
				}
			}
		}
	}
}

// comparable reports whether no fault and no queue within a client decides whether x or y
// is served first.
func (w *world) comparable(x, y *history.Claim) bool {
	from := x.Asked - settleTime
	return !sameClient(x, y) && !w.touchedClaim(x, from, y.Got) && !w.faults.touched(y.Worker, from, y.Got)
}

func (w *world) passed(n *name, x, y *history.Claim) {
	text, args := "%s asked for %q at %s and ", []any{upper{x}, n.Name, at(x.Asked)}
	if x.Answer == history.Granted {
		text, args = text+"got it only at %s", append(args, at(x.Got))
	} else {
		text += "was not served at all"
	}
	w.add(Violation{Rule: Order, Name: n.Name, From: x.Asked, To: w.waitEnd(x), Claims: ids(x, y)},
		text+". %s asked later, at %s, and got it at %s.", append(args, upper{y}, at(y.Asked), at(y.Got))...)
}
