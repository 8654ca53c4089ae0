package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// tickets records the claims on the nodes of a quorum, and checks three rules of their
// order, which is the order of the times at which they began, on their processes' clocks:
//
//   - Each node's queue is in that order, as far as clocks agree.
//   - A claim on a majority of the nodes is granted before a claim that came later and
//     began later.
//   - A claim gives a vote back only for a claim that began before it, or when another
//     claim has a majority.
//
// tickets reads the nodes directly, without the network. On the nodes it recognizes a
// claim by its owner, which the quorum makes different for each claim. queue.mu protects
// all of it.
type tickets struct {
	places map[string]*place   // by owner
	frames map[string][]*frame // by name
}

// A frame is the state of a name on one node, until the next frame of that node.
type frame struct {
	node             int
	from, to         moment // to is never for the last frame
	holders, waiters []string
}

// A footing is the state of one claim on one node.
type footing struct {
	since    time.Time // of the place or the lease, according to the node
	waits    bool
	from     moment // from then on, it was there without a break; never if it is not
	earliest time.Time
	latest   time.Time // the limits of its ticket there, on the node's clock
	again    bool      // it was there before, and lost its place
	known    bool      // it was there at some time
}

// beganAt returns the time at which a claim began, on the clock of its process.
func (w *world) beganAt(p *place) time.Time {
	return w.start.Add(p.asked + w.plan.processes[p.process-1].ahead)
}

// noteOwner records the owner of a claim on the nodes.
func (q *queue) noteOwner(w *world, c driver.Claim) {
	if w.plan.backend != "quorum" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.of(c.Token)
	if p == nil || p.footings != nil {
		return
	}
	p.footings = make([]footing, len(w.nodes))
	for i := range p.footings {
		p.footings[i].from = never
	}
	q.tickets.places[c.Owner.Client] = p
}

// readNode reads a node that has just handled a request.
func (q *queue) readNode(w *world, n *node, name string) {
	e := n.entry(name)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := &frame{node: n.number, from: w.now(), to: never}
	stands := map[*place]bool{}
	for _, h := range e.Holders {
		now.holders = append(now.holders, h.Owner.Client)
		if p := q.tickets.places[h.Owner.Client]; p != nil {
			stands[p] = true
			p.noteFooting(w, n, h.Since, false)
		}
	}
	for _, x := range e.Waiters {
		now.waiters = append(now.waiters, x.Owner.Client)
		if p := q.tickets.places[x.Owner.Client]; p != nil {
			stands[p] = true
			p.noteFooting(w, n, x.Since, true)
		}
	}
	for _, p := range q.tickets.places {
		if p.name == name && !stands[p] {
			p.footings[n.number].from = never
		}
	}
	q.addFrame(now, name)
	q.checkOrder(w, now, name)
}

// noteFooting records that a claim is on a node. Its footing begins again if the claim
// lost its place meanwhile, or was granted the name and gave it back.
func (p *place) noteFooting(w *world, n *node, since time.Time, waits bool) {
	f := &p.footings[n.number]
	begins := f.from == never || waits && !f.since.Equal(since)
	f.since, f.waits = since, waits
	if !begins {
		return
	}
	now := n.clock.now()
	beganAt := w.beganAt(p).Add(-driver.MaxLead / 2) // every ticket is early by that much
	f.from, f.latest = w.now(), now
	f.earliest = clamped(beganAt, now.Add(-driver.MaxLead), now)
	f.again, f.known = f.known, true
	if !f.again { // a claim that lost its place gets a new one at the end of the queue
		f.latest = f.earliest
	}
}

// clamped returns t, or the limit that t is beyond.
func clamped(t, low, high time.Time) time.Time {
	switch {
	case t.Before(low):
		return low
	case t.After(high):
		return high
	}
	return t
}

// addFrame adds a frame, if the state has changed.
func (q *queue) addFrame(now *frame, name string) {
	all := q.tickets.frames[name]
	for _, s := range slices.Backward(all) {
		if s.node != now.node {
			continue
		}
		if slices.Equal(s.holders, now.holders) && slices.Equal(s.waiters, now.waiters) {
			return
		}
		s.to = now.from
		break
	}
	q.tickets.frames[name] = append(all, now)
}

// checkOrder is the rule of one node's queue. A node counts in microseconds.
func (q *queue) checkOrder(w *world, s *frame, name string) {
	if w.plan.damagesNodes() {
		return
	}
	for i := 1; i < len(s.waiters); i++ {
		a, b := q.tickets.places[s.waiters[i-1]], q.tickets.places[s.waiters[i]]
		if a == nil || b == nil {
			continue
		}
		early, late := a.footings[s.node], b.footings[s.node]
		if d := early.earliest.Sub(late.latest); d > 2*time.Microsecond {
			w.violated(name, "tickets: on node %d a claim of process %d, asked for at %v, stands before one of process %d, asked for at %v, which comes %v before it",
				s.node, a.process, a.asked, b.process, b.asked, d)
		}
	}
}

// passes reports whether claim b, which a quorum grants now, passes claim a, which was
// surely before it: on a majority of the nodes since before b began. A lost place counts
// from the time at which a got a new one.
func (q *queue) passes(w *world, b, a *place) bool {
	if a.footings == nil || w.plan.damagesNodes() {
		return false
	}
	nodesBefore := 0
	for _, f := range a.footings {
		beganAt := w.beganAt(a)
		if f.again {
			beganAt = beganAt.Add(f.from - a.asked)
		}
		if f.from != never && f.from < b.asked && beganAt.Before(w.beganAt(b)) {
			nodesBefore++
		}
	}
	return nodesBefore > len(w.nodes)/2
}

// checkGivesBack checks an exclusive claim that still waits, and gives back the vote of a
// node. It may do so for a claim that began before it and waits there, or for a claim
// that has a majority, if it has seen that claim since its last request.
func (q *queue) checkGivesBack(w *world, n int, l driver.LeaseRef) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.of(l.Token)
	if a == nil || a.over || !a.queues || a.weight != driver.Exclusive || a.footings == nil || a.footings[n].from == never || a.footings[n].waits {
		return
	}
	holds := map[string]map[int]bool{}
	for _, s := range q.tickets.frames[l.Name] {
		if s.to != never && s.to < a.tried {
			continue
		}
		for _, o := range s.waiters {
			if p := q.tickets.places[o]; s.node == n && p != nil && !w.beganAt(a).Before(w.beganAt(p)) && p != a {
				return
			}
		}
		for _, o := range s.holders {
			if holds[o] == nil {
				holds[o] = map[int]bool{}
			}
			if holds[o][s.node] = true; len(holds[o]) > len(w.nodes)/2 && q.tickets.places[o] != a {
				return
			}
		}
	}
	w.violated(l.Name, "tickets: a claim of process %d, asked for at %v, gives back what it has on node %d, and no claim stands before it there: %s",
		a.process, a.asked, n, fmt.Sprint(q.standing(n, l.Name)))
}

// standing returns the claims that wait on a node, for a message.
func (q *queue) standing(n int, name string) (out []string) {
	for _, s := range q.tickets.frames[name] {
		if s.node != n || s.to != never {
			continue
		}
		for _, o := range s.waiters {
			if p := q.tickets.places[o]; p != nil {
				out = append(out, fmt.Sprintf("process %d, at %v", p.process, p.asked))
			}
		}
	}
	return out
}

// damagesNodes reports whether a node's clock jumps, or a node loses its data. Then
// places are lost, too.
func (p *plan) damagesNodes() bool {
	return slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind == "jump" || f.kind == "wipe" })
}
