package proxy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A Fault is a disturbance of the connections of a worker, which its proxy causes for
// some time.
//
//   - history.Cut resets all connections, and half of those that the worker makes until
//     the end.
//   - history.Delay delays each piece of data, in each direction. The order within a
//     connection stays.
//   - history.Reorder delays everything on half of the connections to each target, in
//     each direction, so that a request on another connection overtakes it.
//   - history.Swallow delivers what the worker sends, and drops what the server answers.
//     At the end the proxy resets the connections that have lost data.
//   - history.Silence accepts connections and keeps them open, and nothing passes in
//     either direction. At the end the proxy either delivers what it has held back, or
//     resets all connections; Seed decides.
type Fault struct {
	Kind string
	Most time.Duration // how late a piece is at most with Delay, and exactly with Reorder
	Seed uint64        // decides all that is random
}

// running is a fault that has begun. The mutex of the proxy protects it. Methods that
// accept nil do nothing without a fault.
type running struct {
	Fault
	random *rand.Rand
	hit    int
	late   map[*link]bool  // the links that Reorder has chosen, and whether it delays them
	next   map[string]bool // whether it delays the next link to a target
	resets bool            // Silence ends with a reset
}

// Begin begins a fault. Its result ends the fault, and returns how many pieces of data
// the fault has delayed, dropped or held back, or how many connections it has cut. Then
// the proxy delivers the data that is still on its way at once, in order. Begin panics
// while another fault of this proxy lasts.
func (p *Proxy) Begin(f Fault) (end func() (hit int)) {
	r := &running{Fault: f, random: rand.New(rand.NewPCG(f.Seed, 0)), late: map[*link]bool{}, next: map[string]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		panic("proxy: another fault has not ended")
	}
	p.fault = r
	switch f.Kind {
	case history.Cut:
		r.hit = p.cut()
	case history.Reorder:
		for _, l := range p.links {
			r.chooseLate(l)
		}
	case history.Silence:
		r.resets = r.coin()
	}
	return sync.OnceValue(func() int { return p.finish(r) })
}

// finish ends a fault.
func (p *Proxy) finish(r *running) (hit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
	for _, l := range slices.Clone(p.links) {
		if r.Kind == history.Swallow && l.hole || r.resets {
			l.reset()
		} else {
			l.makeAllDue()
		}
	}
	return r.hit
}

func (r *running) coin() bool { return r.random.IntN(2) == 0 }

// silent reports whether nothing passes.
func (r *running) silent() bool { return r != nil && r.Kind == history.Silence }

// cuts decides whether a new connection is reset.
func (r *running) cuts() bool {
	if r == nil || r.Kind != history.Cut || !r.coin() {
		return false
	}
	r.hit++
	return true
}

// swallows decides whether a piece of data is dropped.
func (r *running) swallows(way *pipe) bool {
	if r == nil || r.Kind != history.Swallow || way != &way.link.replies {
		return false
	}
	r.hit++
	return true
}

// chooseLate decides whether Reorder delays a link. Of the links to one target, it delays
// every other one; a coin decides about the first.
func (r *running) chooseLate(l *link) {
	if r == nil || r.Kind != history.Reorder {
		return
	}
	late, chosen := r.next[l.target]
	if !chosen {
		late = r.coin()
	}
	r.late[l], r.next[l.target] = late, !late
}

// delay returns how late a piece of data is, and counts it if the fault changes anything.
func (r *running) delay(l *link) (late time.Duration) {
	switch {
	case r == nil:
		return 0
	case r.Kind == history.Silence:
		r.hit++
		return 0
	case r.Kind == history.Delay:
		late = time.Duration(r.random.Int64N(int64(r.Most) + 1))
	case r.Kind == history.Reorder && r.late[l]:
		late = r.Most
	}
	if late > 0 {
		r.hit++
	}
	return late
}
