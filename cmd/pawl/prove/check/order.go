package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The margins of the order.
const (
	// A claim that was asked for this much earlier reached the queue first.
	earlier = int64(time.Second)

	// The server may have made a grant first that its waiter saw this much later. If two
	// claims hold side by side, no release lies between their grants, so then
	// the limit is the constant earlier.
	sooner = int64(100 * time.Millisecond)

	// A fault that ended this long before a claim was asked for has no effect on it.
	settled = int64(500 * time.Millisecond)
)

// order finds claims that were served before a claim that had asked earlier. It compares
// only claims of one kind, and only of clients without another claim of the name, because
// a client may pass a lease on among its own waiters.
func (w *world) order(n *name) {
	if !w.run.Ordered {
		return
	}
	type what struct {
		mode   string
		weight int
	}
	waits := map[what][]*history.Claim{}
	var kinds []what
	behind := w.behindOwn(n)
	for _, c := range n.claims {
		if c.How != history.Wait && c.How != history.Lead || behind[c] {
			continue
		}
		k := what{c.Mode, c.Weight}
		if waits[k] == nil {
			kinds = append(kinds, k)
		}
		waits[k] = append(waits[k], c)
	}
	for _, k := range kinds {
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
		for i := len(b.near) - 1; i >= 0 && b.near[i].Asked+earlier >= c.Asked; i-- {
			x := b.near[i]
			if c.Answer != history.Held && w.over(x) >= c.Asked && (c.How == history.All || w.over(c) < w.over(x)) {
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

// orderOf compares claims of one kind, which are in the order of Asked.
func (w *world) orderOf(n *name, claims []*history.Claim) {
	served := make([]*history.Claim, 0, len(claims))
	for _, c := range claims {
		if c.Answer == history.Granted {
			served = append(served, c)
		}
	}
	// Count the pairs in which the queue could have been wrong.
	waits := newChain(claims)
	for _, y := range served {
		waits.each(func(x *history.Claim) (gone, on bool) {
			switch {
			case x.Asked+earlier >= y.Asked:
				return false, false
			case w.over(x) <= y.Asked:
				return true, true
			case x.Answer == history.Granted && w.comparable(x, y):
				w.numbers.QueuePairs++
			}
			return false, true
		})
	}
	// Find the pairs in which it was wrong.
	slices.SortStableFunc(served, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	waits = newChain(claims)
	for _, y := range served {
		waits.each(func(x *history.Claim) (gone, on bool) {
			switch {
			case x.Asked+earlier >= y.Asked:
				return false, false
			case w.over(x)-sooner <= y.Got:
				return true, true
			}
			grace := sooner
			if !n.excludes(x, y) {
				grace = earlier
			}
			if w.over(x)-grace > y.Got && w.comparable(x, y) && !w.stops.touched(x.Worker, y.Got, y.Got+grace) {
				w.passed(n, x, y)
			}
			return false, true
		})
	}
}

// comparable reports whether no fault and no queue within a client decides whether x or y
// is served first.
func (w *world) comparable(x, y *history.Claim) bool {
	from := x.Asked - settled
	return !sameClient(x, y) && !w.touchedClaim(x, from, y.Got) && !w.faults.touched(y.Worker, from, y.Got)
}

func (w *world) passed(n *name, x, y *history.Claim) {
	if w.full(Order, n.Name.Name) {
		return
	}
	then := "was not served at all"
	if x.Answer == history.Granted {
		then = "got it only at " + at(x.Got)
	}
	w.add(Violation{
		Rule: Order, Name: n.Name.Name, From: x.Asked, To: w.over(x), Claims: ids(x, y),
		Text: fmt.Sprintf("%s asked for %q at %s and %s. %s asked later, at %s, and got it at %s.",
			upper(x), n.Name.Name, at(x.Asked), then, upper(y), at(y.Asked), at(y.Got)),
	})
}
