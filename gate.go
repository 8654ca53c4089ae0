package pawl

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// gates is the local queue of each name: the waiters of this process stand in it in order, and only its head
// stands in the backend's queue. So a process counts there as one, however many goroutines wait in it, and a
// thousand of them cost the backend no more than one.
//
// While nobody has been told "held", claims that can stand beside each other (readers, and as many permits as
// there are) do not wait for the answer of those ahead: only a queue that stands is kept short.
//
// An exclusive lease may be passed on inside the process: when it is released within the batch time of its
// grant, the next waiter here takes it over, with the next fence of its run, and no request is made. The head
// does not queue in the backend during that time; after it, the process goes to the end of the queue there
// like everybody else, so that another process waits no longer than a batch and one hold.
type gates struct {
	batch time.Duration // negative: never passed on

	mu    sync.Mutex // protects all below, and the fields of each gate and waiter that say so
	gates map[string]*gate
	open  []window // those that are open, or were, in the order in which they close
}

// A window is the time in which a tenure may be passed on. It is open while the gate has the tenure.
type window struct {
	gate   *gate
	tenure *tenure
}

// A gate is the local queue of one name. It exists while somebody waits or a tenure may be passed on.
type gate struct {
	queue []*waiter
	room  [1]*waiter        // the queue's first array: mostly there is only one
	last  *driver.HeldError // what the head was told last
	// Since when the backend fails whoever asks here, one after the other, and how; zero if it answers.
	failing time.Time
	failure error
	// The exclusive tenure that may be passed on, until the window closes.
	tenure *tenure
	closes time.Time
	timer  *time.Timer // gives the head its turn when the window closes; nil when nobody has needed it
}

// A waiter is a claim in the local queue.
type waiter struct {
	claim *claim
	since time.Time // when it came, if it had to wait for its turn

	// Protected by gates.mu.
	state waiterState
	lease *Lease // when it was passed on
	err   error  // when it is out because of what one ahead of it heard

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
func (g *gates) enter(c *claim) *waiter {
	w := &waiter{claim: c}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.at(c.Name)
	if len(q.queue) == 0 {
		q.last = nil // whatever was heard before is old
		q.answered()
	}
	q.queue = append(q.queue, w)
	g.advance(q)
	if w.state == local {
		w.turn, w.since = make(chan struct{}), time.Now()
	}
	return w
}

// tried says what stands in the way of a try here already: anybody who waits, but for those who ask and could
// stand beside it. It does not ask the backend.
func (g *gates) tried(c *claim) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.gates[c.Name]
	if q == nil || len(q.queue) == 0 {
		return nil
	}
	if q.failure != nil {
		return q.failure // nobody knows whether it is held
	}
	if !c.exclusive() && !slices.ContainsFunc(q.queue, func(w *waiter) bool { return w.state != asking || w.claim.exclusive() }) {
		return nil
	}
	held := &driver.HeldError{Name: c.Name}
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
		q.answered()
	}
}

// failed notes that w got no answer to what it sent then. It says since when that is so, as far as w has borne
// it: those who waited behind others bore it with them.
func (g *gates) failed(w *waiter, sent time.Time, err error) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.gates[w.claim.Name]
	q.failure = err
	if q.failing.IsZero() {
		q.failing = sent
	}
	if w.since.IsZero() {
		return sent
	}
	return q.borne(w)
}

// fail ends the waiting of all here who have borne a failing backend for as long as they should, in the name
// of the one who asked for them. Each by itself would find out no sooner than those ahead of it.
func (g *gates) fail(name string, rideOut time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, now := g.gates[name], time.Now()
	q.queue = slices.DeleteFunc(q.queue, func(w *waiter) bool {
		out := w.state == local && now.Sub(q.borne(w)) >= rideOut
		if out {
			w.state, w.err = left, err
			close(w.turn)
		}
		return out
	})
}

// borne is since when w bears a failing backend. The caller holds the mutex.
func (q *gate) borne(w *waiter) time.Time {
	if w.since.After(q.failing) {
		return w.since
	}
	return q.failing
}

// answered notes that the backend answers. The caller holds the mutex.
func (q *gate) answered() { q.failing, q.failure = time.Time{}, nil }

// heard is what was last heard of the name: why somebody waits who has not asked.
func (g *gates) heard(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch q := g.gates[name]; {
	case q == nil:
	case q.failure != nil:
		return q.failure
	case q.last != nil:
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
	g.sweep(now.mono)
	q := g.at(t.claim.Name)
	q.answered()
	if opens && !t.lost() { // else lose has looked here already, and would not look again
		g.shut(q) // of a tenure that was taken from us, and that nobody here knows to be lost yet
		q.tenure, q.closes = t, now.mono.Add(g.batch)
		g.open = append(g.open, window{q, t})
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
		if l := t.pass(w.claim, t.c.now()); l != nil {
			g.unqueue(q, w)
			w.state, w.lease = passed, l
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

// sweep forgets tenures whose window has closed, so that a lease that is held for long costs no gate. The caller holds the
// mutex.
func (g *gates) sweep(now time.Time) {
	for len(g.open) > 0 {
		if q, t := g.open[0].gate, g.open[0].tenure; q.tenure == t {
			if now.Before(q.closes) {
				return
			}
			g.shut(q)
			g.advance(q)
			g.tidy(t.claim.Name, q)
		}
		g.open[0] = window{}
		g.open = g.open[1:]
	}
}

// passable reports whether the tenure of q could be passed to w. The caller holds the mutex.
func (g *gates) passable(q *gate, w *waiter) bool {
	return q.tenure != nil && w.state == local && q.tenure.claim.alike(w.claim) &&
		time.Now().Before(q.closes)
}

// advance lets those ask whose turn it is. The caller holds the mutex, and calls it after each change.
func (g *gates) advance(q *gate) {
	weight := int64(0) // of those who ask, as a sum that int does not hold everywhere
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
		// The next one may ask beside those ahead only if all could be granted together, and nothing is known
		// that says they could not.
		weight += int64(w.claim.Weight)
		if w.state == queued || i+1 < len(q.queue) && weight+int64(q.queue[i+1].claim.Weight) > int64(q.queue[i+1].claim.Limit) {
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
