package sim

import (
	"fmt"
	"time"
)

// A fault is what goes wrong at one moment, or from it on for a while.
type fault struct {
	at      time.Duration
	kind    string
	lasts   time.Duration // or by how much a clock jumps
	process int
	node    int
}

func (f fault) String() string {
	return fmt.Sprintf("%s for %v (process %d, node %d)", f.kind, f.lasts, f.process, f.node)
}

// drawFaults draws up to four, of those that the backend may meet. All are over at the
// end of the span.
//
// What breaks a documented assumption for all names at once is drawn alone and seldom,
// because the checker must then be lenient for a while: a clock that jumps, a backend
// that loses its data.
func (p *plan) drawFaults(d *dice) {
	kinds := []string{"pause", "hang", "cut", "kill", "close", "shutdown"}
	breaks := []string{"jump", "wipe"}
	for range 1 + d.below(4) {
		f := fault{
			at: d.between(0, p.span), kind: one(d, kinds...), lasts: d.between(0, p.unit),
			process: d.below(len(p.processes)), node: d.below(len(p.nodes)),
		}
		if d.chance(30) {
			f.lasts *= 3
		}
		f.lasts = min(f.lasts, p.span-f.at)
		p.faults = append(p.faults, f)
	}
	if !d.chance(20) {
		return
	}
	f := fault{at: d.between(p.unit/2, p.span), kind: one(d, breaks...), node: d.below(len(p.nodes))}
	switch f.kind {
	case "jump":
		f.lasts = d.between(0, 2*p.unit)
		if d.chance(30) {
			f.lasts = -f.lasts
		}
	case "wipe":
		f.lasts = p.staysAway(d)
	}
	p.faults = append(p.faults, f)
}

// staysAway is how long a node stays away that lost its data. One of a quorum has to: the
// longest TTL (here also what a break or a lock-delay lasts), MaxLead, and the difference
// of the clocks. One that stands alone may be back at once.
func (p *plan) staysAway(d *dice) time.Duration {
	if p.backend == "quorum" {
		return 3*p.unit + 2*time.Minute
	}
	return d.between(time.Millisecond, p.unit)
}

// strike makes it happen.
func (w *world) strike(f fault) {
	p := w.processes[f.process]
	w.note("", p, f.kind, f)
	switch f.kind {
	case "pause":
		p.pause(f.lasts)
	case "kill":
		p.kill()
	case "close":
		p.closes(time.Minute, p.close)
	case "shutdown":
		p.closes(time.Minute, p.locks.Shutdown)
	case "cut":
		p.mu.Lock()
		p.cut = max(p.cut, w.now()+f.lasts)
		p.mu.Unlock()
		for i, r := range p.roads {
			if w.plan.backend == "quorum" && i != f.node {
				continue
			}
			r.mu.Lock()
			r.cut = max(r.cut, w.now()+f.lasts)
			r.mu.Unlock()
		}
	case "hang":
		w.nodes[f.node].hang(f.lasts)
	case "jump":
		w.nodes[f.node].jump(f.lasts)
		if !w.withstands(f) {
			w.shakes("", f.kind)
		}
	case "wipe":
		w.nodes[f.node].lose(f.lasts)
		if !w.withstands(f) {
			w.shakes("", f.kind)
		}
	}
}

// withstands reports whether nobody may notice: a quorum bears a node that lost its data
// and stays away. It bears one whose clock jumps, too, as long as no lease is held by a
// bare majority: where messages are not lost, and nothing else goes wrong.
func (w *world) withstands(f fault) bool {
	return w.plan.backend == "quorum" && (f.kind == "wipe" || w.plan.weather.slow == 0 && len(w.plan.faults) == 1)
}
