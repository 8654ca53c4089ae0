package check

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The tolerances of the rule Order.
const (
	// A claim that was asked for askMargin earlier reached the queue first.
	askMargin = int64(time.Second)

	// The waiter that the server granted first may see its grant up to grantMargin after
	// the other one. For claims that can be held together the limit is askMargin, because
	// no release lies between their grants.
	grantMargin = int64(100 * time.Millisecond)

	// A fault has no effect on a claim that was asked for settleTime after its end.
	settleTime = int64(500 * time.Millisecond)
)

// order finds claims that were served before a claim that had asked earlier. It compares
// only claims of the same class. It skips claims behind another claim of their client,
// because a client may pass a lease on among its own waiters.
func (w *world) order(n *name) {
	if !w.Run.Ordered {
		return
	}
	waits := map[class][]*history.Claim{}
	var classes []class
	behind := w.behindOwnClient(n)
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
		w.compareWaits(n, waits[k])
	}
}

// behindOwnClient returns the claims that may have waited behind another claim of their
// client. Of two claims asked for at about the same time, the second may have entered the
// client's own queue first. In that case the wait of the second ended first.
func (w *world) behindOwnClient(n *name) map[*history.Claim]bool {
	type client struct{ worker, life, client int }
	type ownClaims struct {
		until int64            // the end of the client's last claim
		all   []*history.Claim // in the order of Asked
	}
	clients := map[client]ownClaims{}
	behind := map[*history.Claim]bool{}
	for _, c := range n.claims {
		k := client{c.Worker, c.Life, c.Client}
		own, ok := clients[k]
		if ok && own.until >= c.Asked {
			behind[c] = true
		}
		for i := len(own.all) - 1; i >= 0 && own.all[i].Asked+askMargin >= c.Asked; i-- {
			x := own.all[i]
			if c.Answer != history.Held && w.waitEnd(x) >= c.Asked && (c.How == history.All || w.waitEnd(c) < w.waitEnd(x)) {
				behind[x] = true
			}
		}
		if last := w.lastMoment(c); !ok || last > own.until {
			own.until = last
		}
		own.all = append(own.all, c)
		clients[k] = own
	}
	return behind
}

// compareWaits compares claims of one class, which are in the order of Asked.
func (w *world) compareWaits(n *name, claims []*history.Claim) {
	served := slices.DeleteFunc(slices.Clone(claims), func(c *history.Claim) bool { return c.Answer != history.Granted })
	// Count the pairs for which the queue could have been wrong.
	for x, y := range w.waitingPairs(claims, served, func(y *history.Claim) int64 { return y.Asked }) {
		if x.Answer == history.Granted && w.comparable(x, y) {
			w.Numbers.QueuePairs++
		}
	}
	// Find the pairs for which it was wrong.
	slices.SortStableFunc(served, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	for x, y := range w.waitingPairs(claims, served, func(y *history.Claim) int64 { return y.Got + grantMargin }) {
		grace := grantMargin
		if !n.excludes(x, y) {
			grace = askMargin
		}
		if w.waitEnd(x) > y.Got+grace && w.comparable(x, y) && !w.stops.touched(x.Worker, y.Got, y.Got+grace) {
			w.addPassed(n, x, y)
		}
	}
}

// waitingPairs yields pairs of claims: x was asked for much earlier than y, and still
// waited at timeOf(y). These times ascend.
func (w *world) waitingPairs(claims, served []*history.Claim, timeOf func(y *history.Claim) int64) iter.Seq2[*history.Claim, *history.Claim] {
	return func(yield func(x, y *history.Claim) bool) {
		var waiting []*history.Claim
		for _, y := range served {
			t := timeOf(y)
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

// comparable reports whether only the queue on the server decides whether x or y is
// served first: neither a fault nor a queue within a client does.
func (w *world) comparable(x, y *history.Claim) bool {
	from := x.Asked - settleTime
	return !sameClient(x, y) && !w.touchedClaim(x, from, y.Got) && !w.faults.touched(y.Worker, from, y.Got)
}

func (w *world) addPassed(n *name, x, y *history.Claim) {
	text, args := "%s asked for %q at %s and ", []any{upper{x}, n.Name, at(x.Asked)}
	if x.Answer == history.Granted {
		text, args = text+"got it only at %s", append(args, at(x.Got))
	} else {
		text += "was not served at all"
	}
	w.add(Violation{Rule: Order, Name: n.Name, From: x.Asked, To: w.waitEnd(x), Claims: ids(x, y)},
		text+". %s asked later, at %s, and got it at %s.", append(args, upper{y}, at(y.Asked), at(y.Got))...)
}
