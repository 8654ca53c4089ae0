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
	places     map[string]*place       // by owner
	nodeStates map[string][]*nodeState // by name
}

// A nodeState is the state of a name on one node, until the next state of that node.
type nodeState struct {
	node             int
	from, to         moment // to is never for the last state
	holders, waiters []string
}

// A nodeClaim is the state of one claim on one node.
type nodeClaim struct {
	since     time.Time // of the place or the lease, according to the node
	waits     bool
	from      moment // from then on, it was there without a break; never if it is not there
	earliest  time.Time
	latest    time.Time // the limits of its ticket there, on the node's clock
	lostPlace bool      // it was there before, and lost its place
	wasThere  bool      // it is there, or was there at some time
}

// beganAt returns the time at which a claim began, on the clock of its process.
func (w *world) beganAt(p *place) time.Time {
	return w.start.Add(p.firstSent + w.plan.processes[p.process-1].ahead)
}

// noteOwner records the owner of a claim on the nodes.
func (q *queue) noteOwner(w *world, c driver.Claim) {
	if w.plan.backend != "quorum" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.placeOf(c.Token)
	if p == nil || p.onNodes != nil {
		return
	}
	p.onNodes = make([]nodeClaim, len(w.nodes))
	for i := range p.onNodes {
		p.onNodes[i].from = never
	}
	q.tickets.places[c.Owner.Client] = p
}

// readNode reads a node that has just handled a request.
func (q *queue) readNode(w *world, n *node, name string) {
	e := n.entry(name)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := &nodeState{node: n.number, from: w.now(), to: never}
	present := map[*place]bool{}
	for _, h := range e.Holders {
		now.holders = append(now.holders, h.Owner.Client)
		if p := q.tickets.places[h.Owner.Client]; p != nil {
			present[p] = true
			p.noteOnNode(w, n, h.Since, false)
		}
	}
	for _, x := range e.Waiters {
		now.waiters = append(now.waiters, x.Owner.Client)
		if p := q.tickets.places[x.Owner.Client]; p != nil {
			present[p] = true
			p.noteOnNode(w, n, x.Since, true)
		}
	}
	for _, p := range q.tickets.places {
		if p.name == name && !present[p] {
			p.onNodes[n.number].from = never
		}
	}
	q.addState(now, name)
	q.checkOrder(w, now, name)
}

// noteOnNode records that a claim is on a node. Its time there begins again if the claim
// lost its place meanwhile, or was granted the name and gave it back.
func (p *place) noteOnNode(w *world, n *node, since time.Time, waits bool) {
	f := &p.onNodes[n.number]
	begins := f.from == never || waits && !f.since.Equal(since)
	f.since, f.waits = since, waits
	if !begins {
		return
	}
	now := n.clock.now()
	beganAt := w.beganAt(p).Add(-driver.MaxLead / 2) // every ticket is early by that much
	f.from, f.latest = w.now(), now
	f.earliest = clamped(beganAt, now.Add(-driver.MaxLead), now)
	f.lostPlace, f.wasThere = f.wasThere, true
	if !f.lostPlace { // a claim that lost its place gets a new one at the end of the queue
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

// addState adds a state if it differs from the last one of its node.
func (q *queue) addState(now *nodeState, name string) {
	all := q.tickets.nodeStates[name]
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
	q.tickets.nodeStates[name] = append(all, now)
}

// checkOrder is the rule of one node's queue. A node counts in microseconds.
func (q *queue) checkOrder(w *world, s *nodeState, name string) {
	if w.plan.damagesNodes() {
		return
	}
	for i := 1; i < len(s.waiters); i++ {
		a, b := q.tickets.places[s.waiters[i-1]], q.tickets.places[s.waiters[i]]
		if a == nil || b == nil {
			continue
		}
		early, late := a.onNodes[s.node], b.onNodes[s.node]
		if d := early.earliest.Sub(late.latest); d > 2*time.Microsecond {
			w.violated(name, "tickets: on node %d a claim of process %d, asked for at %v, stands before one of process %d, asked for at %v, which comes %v before it",
				s.node, a.process, a.firstSent, b.process, b.firstSent, d)
		}
	}
}

// passes reports whether claim b, which a quorum grants now, passes claim a, which was
// surely before it: on a majority of the nodes since before b began. A lost place counts
// from the time at which a got a new one.
func (q *queue) passes(w *world, b, a *place) bool {
	if a.onNodes == nil || w.plan.damagesNodes() {
		return false
	}
	nodesBefore := 0
	for _, f := range a.onNodes {
		beganAt := w.beganAt(a)
		if f.lostPlace {
			beganAt = beganAt.Add(f.from - a.firstSent)
		}
		if f.from != never && f.from < b.firstSent && beganAt.Before(w.beganAt(b)) {
			nodesBefore++
		}
	}
	return nodesBefore > len(w.nodes)/2
}

// checkGivesBack checks an exclusive claim that still waits and gives back the vote of a
// node. The claim may do so for a claim that began before it and waits on that node. It
// may also do so for a claim with a majority that it has seen since its last request.
func (q *queue) checkGivesBack(w *world, n int, l driver.LeaseRef) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.placeOf(l.Token)
	if a == nil || a.over || !a.queues || a.weight != driver.Exclusive || a.onNodes == nil || a.onNodes[n].from == never || a.onNodes[n].waits {
		return
	}
	holds := map[string]map[int]bool{}
	for _, s := range q.tickets.nodeStates[l.Name] {
		if s.to != never && s.to < a.lastSent {
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
		a.process, a.firstSent, n, fmt.Sprint(q.standing(n, l.Name)))
}

// standing returns the claims that wait on a node, for a message.
func (q *queue) standing(n int, name string) (out []string) {
	for _, s := range q.tickets.nodeStates[name] {
		if s.node != n || s.to != never {
			continue
		}
		for _, o := range s.waiters {
			if p := q.tickets.places[o]; p != nil {
				out = append(out, fmt.Sprintf("process %d, at %v", p.process, p.firstSent))
			}
		}
	}
	return out
}

// damagesNodes reports whether a node's clock jumps, or a node loses its data. Such a
// fault also loses places.
func (p *plan) damagesNodes() bool {
	return slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind == "jump" || f.kind == "wipe" })
}
