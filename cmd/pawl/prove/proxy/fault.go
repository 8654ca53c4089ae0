package proxy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A Fault is a temporary disturbance of a worker's connections, which its proxy causes.
//
//   - history.Cut resets all connections, and half of the connections that the worker
//     opens during the fault.
//   - history.Delay delays each piece of data in both directions. It keeps the order
//     within a connection.
//   - history.Reorder delays all data on half of the connections to each target, in both
//     directions, so that requests on other connections overtake it.
//   - history.Swallow delivers requests and drops replies. At its end the proxy resets
//     the connections that have lost data.
//   - history.Silence keeps connections open and accepts new ones, but passes no data. At
//     its end the proxy either delivers the data that it has held back, or resets all
//     connections; Seed decides.
type Fault struct {
	Kind     string
	MaxDelay time.Duration // the longest delay of Delay, and the only delay of Reorder
	Seed     uint64        // of all random decisions
}

// activeFault is a fault that has begun. The proxy's mutex protects it. A nil activeFault
// means that no fault lasts; some methods accept it.
type activeFault struct {
	Fault
	random    *rand.Rand
	hit       int
	delays    map[*link]bool  // whether Reorder delays a link
	delayNext map[string]bool // whether Reorder delays the next link to a target
	resets    bool            // Silence ends with a reset
}

// Begin begins a fault; it panics while another fault of this proxy lasts. end ends the
// fault, after which the proxy delivers all delayed data at once, in order. end returns
// the number of pieces of data that the fault has delayed, dropped or held back, or the
// number of connections that it has cut.
func (p *Proxy) Begin(f Fault) (end func() (hit int)) {
	r := &activeFault{Fault: f, random: rand.New(rand.NewPCG(f.Seed, 0)), delays: map[*link]bool{}, delayNext: map[string]bool{}}
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
			r.chooseDelayed(l)
		}
	case history.Silence:
		r.resets = r.coin()
	}
	return sync.OnceValue(func() int { return p.finish(r) })
}

// finish ends a fault.
func (p *Proxy) finish(r *activeFault) (hit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
	for _, l := range slices.Clone(p.links) {
		if r.Kind == history.Swallow && l.replyDropped || r.resets {
			l.reset()
		} else {
			l.makeAllDue()
		}
	}
	return r.hit
}

func (r *activeFault) coin() bool { return r.random.IntN(2) == 0 }

// silent reports whether the fault is a Silence.
func (r *activeFault) silent() bool { return r != nil && r.Kind == history.Silence }

// cuts decides whether a new connection is reset.
func (r *activeFault) cuts() bool {
	if r == nil || r.Kind != history.Cut || !r.coin() {
		return false
	}
	r.hit++
	return true
}

// swallows decides whether a piece of data is dropped.
func (r *activeFault) swallows(way *pipe) bool {
	if r == nil || r.Kind != history.Swallow || way != &way.link.replies {
		return false
	}
	r.hit++
	return true
}

// chooseDelayed decides whether Reorder delays a link. It delays every other link to a
// target; a coin decides about the first.
func (r *activeFault) chooseDelayed(l *link) {
	if r == nil || r.Kind != history.Reorder {
		return
	}
	delays, known := r.delayNext[l.target]
	if !known {
		delays = r.coin()
	}
	r.delays[l], r.delayNext[l.target] = delays, !delays
}

// delay returns the delay of a piece of data, and counts the pieces that the fault hits.
func (r *activeFault) delay(l *link) (d time.Duration) {
	switch {
	case r == nil:
		return 0
	case r.Kind == history.Silence:
		r.hit++
		return 0
	case r.Kind == history.Delay:
		d = time.Duration(r.random.Int64N(int64(r.MaxDelay) + 1))
	case r.Kind == history.Reorder && r.delays[l]:
		d = r.MaxDelay
	}
	if d > 0 {
		r.hit++
	}
	return d
}
