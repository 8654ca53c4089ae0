package pawl

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// gates is the local queue of each name: the waiters of this process stand in it in order, and only its head
// stands in the backend's queue. So a process counts there as one, however many goroutines wait in it, and a
// thousand of them cost the backend no more than one.
//
// While nobody has been told "held", claims that can stand beside each other (readers, permits) do not wait
// for the answer of those ahead: only a queue that stands is kept short.
//
// An exclusive lease may be passed on inside the process: when it is released within the batch time of its
// grant, the next waiter here takes it over, with the next fence of its run, and no request is made. The head
// does not queue in the backend during that time; after it, the process goes to the end of the queue there
// like everybody else, so that another process waits no longer than a batch and one hold.
type gates struct {
	batch time.Duration // negative: never passed on

	mu    sync.Mutex // protects all below, and the fields of each gate and waiter that say so
	gates map[string]*gate
}

// A gate is the local queue of one name. It exists while somebody waits or a tenure may be passed on.
type gate struct {
	queue []*waiter
	room  [1]*waiter        // the queue's first array: mostly there is only one
	last  *driver.HeldError // what the head was told last
	// The exclusive tenure that may be passed on, until the window closes.
	tenure *tenure
	closes time.Time
	timer  *time.Timer // gives the head its turn when the window closes; nil when nobody has needed it
}

// A waiter is a claim in the local queue.
type waiter struct {
	claim  *claim
	values context.Context // for the lease, if one is passed on

	// Protected by gates.mu.
	state waiterState
	lease *Lease // when it was passed on

	turn chan struct{} // closed when the state leaves local
}

type waiterState int

const (
	local  waiterState = iota // waits for its turn to ask the backend
	asking                    // may ask, and has not been told "held"
	queued                    // was told "held", and stands in the backend's queue
	passed                    // was given a lease of this process
	left                      // is out of the queue
)

// enter puts a claim at the end of the queue. If it stands in the asking state, its turn has come already.
func (g *gates) enter(ctx context.Context, c *claim) *waiter {
	w := &waiter{claim: c, values: ctx}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.at(c.Name)
	q.queue = append(q.queue, w)
	g.advance(q)
	if w.state == local {
		w.turn = make(chan struct{})
	}
	return w
}

// tried says what stands in the way of a try here already: anybody who waits. It does not ask the backend.
func (g *gates) tried(name string) *driver.HeldError {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.gates[name]
	if q == nil || len(q.queue) == 0 {
		return nil
	}
	held := &driver.HeldError{Name: name}
	if q.last != nil {
		held.Holders = q.last.Holders
	}
	return held
}

// run is how many fences an exclusive claim should reserve: one for itself, and one for each waiter here. No
// more, for fences that are reserved and not used would let them run ahead of the clock.
func (g *gates) run(c *claim) int {
	if g.batch < 0 || !c.exclusive() {
		return 1
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.gates[c.Name]
	if q == nil {
		return 1
	}
	return min(max(len(q.queue), 1), driver.MaxFences)
}

// told notes that the backend answered w with "held".
func (g *gates) told(w *waiter, held *driver.HeldError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.state == asking {
		w.state = queued
	}
	if q := g.gates[w.claim.Name]; q != nil {
		q.last = held
	}
}

// heard is what was last heard of the name: why somebody waits who has not asked.
func (g *gates) heard(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.gates[name]; q != nil && q.last != nil {
		return q.last
	}
	return &driver.HeldError{Name: name}
}

// leave takes w out of the queue, and lets the next one have its turn. It returns the lease that was passed
// to w in the meantime: a waiter that gives up at that very moment has to pass it on.
func (g *gates) leave(w *waiter) *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.state == passed || w.state == left {
		return w.lease
	}
	q := g.gates[w.claim.Name]
	g.unqueue(q, w)
	w.state = left
	g.advance(q)
	g.tidy(w.claim.Name, q)
	return nil
}

// granted takes w, which got t from the backend, out of the queue, and opens the window in which t can be
// passed on. w is nil for a try, which never stood in the queue.
func (g *gates) granted(w *waiter, t *tenure, now reading) {
	opens := g.batch >= 0 && t.claim.exclusive() && t.claim.alike(t.claim)
	if w == nil && !opens {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.at(t.claim.Name)
	if opens {
		g.shut(q) // of a tenure that was taken from us, and that nobody here knows to be lost yet
		q.tenure, q.closes = t, now.mono.Add(g.batch)
	}
	if w != nil {
		g.unqueue(q, w)
		w.state = left
	}
	g.advance(q)
	g.tidy(t.claim.Name, q)
}

func (g *gates) at(name string) *gate {
	q := g.gates[name]
	if q == nil {
		q = &gate{}
		q.queue = q.room[:0]
		g.gates[name] = q
	}
	return q
}

// pass hands a tenure whose lease was released to the first waiter, if that is allowed. Otherwise the tenure
// goes back to the backend, and the waiter asks there.
func (g *gates) pass(t *tenure) bool {
	if g.batch < 0 || !t.claim.exclusive() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.gates[t.claim.Name]
	if q == nil || q.tenure != t {
		return false
	}
	if w := q.first(); w != nil && g.passable(q, w) {
		if now := t.c.now(); t.passable(now) {
			g.unqueue(q, w)
			w.state, w.lease = passed, t.grant(w.values, now)
			close(w.turn)
			return true
		}
	}
	g.shut(q)
	g.advance(q)
	g.tidy(t.claim.Name, q)
	return false
}

// close forgets a tenure that can be passed on no more.
func (g *gates) close(t *tenure) {
	if g.batch < 0 || !t.claim.exclusive() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.gates[t.claim.Name]; q != nil && q.tenure == t {
		g.shut(q)
		g.advance(q)
		g.tidy(t.claim.Name, q)
	}
}

// passable reports whether the tenure of q could be passed to w. The caller holds the mutex.
func (g *gates) passable(q *gate, w *waiter) bool {
	return q.tenure != nil && w.state == local && q.tenure.claim.alike(w.claim) &&
		time.Now().Before(q.closes)
}

// advance lets those ask whose turn it is. The caller holds the mutex, and calls it after each change.
func (g *gates) advance(q *gate) {
	for i, w := range q.queue {
		if w.state == local {
			if i == 0 && g.passable(q, w) {
				g.wakeAtClose(q)
				return
			}
			w.state = asking
			if w.turn != nil {
				close(w.turn)
			}
		}
		// The next one may ask beside this one only if both could be granted together, and nothing is known
		// that says they could not.
		if w.state == queued || w.claim.exclusive() || i+1 < len(q.queue) && q.queue[i+1].claim.exclusive() {
			return
		}
	}
}

// wakeAtClose gives the head its turn when the window closes.
func (g *gates) wakeAtClose(q *gate) {
	if q.timer != nil {
		return
	}
	t := q.tenure
	q.timer = time.AfterFunc(time.Until(q.closes), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if q.tenure == t { // else it went back in the meantime, and this timer came too late to be stopped
			g.shut(q)
			g.advance(q)
			g.tidy(t.claim.Name, q)
		}
	})
}

func (g *gates) shut(q *gate) {
	q.tenure = nil
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

func (g *gates) unqueue(q *gate, w *waiter) {
	for i, x := range q.queue {
		if x == w {
			copy(q.queue[i:], q.queue[i+1:])
			q.queue[len(q.queue)-1] = nil
			q.queue = q.queue[:len(q.queue)-1]
			return
		}
	}
}

func (g *gates) tidy(name string, q *gate) {
	if len(q.queue) == 0 && q.tenure == nil {
		delete(g.gates, name)
	}
}

func (q *gate) first() *waiter {
	if len(q.queue) == 0 {
		return nil
	}
	return q.queue[0]
}
