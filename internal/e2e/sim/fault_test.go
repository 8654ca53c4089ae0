package sim

import (
	"fmt"
	"time"
)

// A fault happens at one moment, or begins then and lasts for a while.
type fault struct {
	at      time.Duration
	kind    string
	lasts   time.Duration // or how far a clock jumps
	process int
	node    int
}

func (f fault) String() string {
	return fmt.Sprintf("%s for %v (process %d, node %d)", f.kind, f.lasts, f.process, f.node)
}

// drawFaults draws one to four faults, which are over at the end of the span.
//
// After a jump of a clock, or a loss of data, the documents promise less for a while, and
// the checker must excuse more. So drawFaults seldom adds such a fault, and never two.
func (p *plan) drawFaults(d *dice) {
	kinds := []string{"pause", "hang", "cut", "kill", "close", "shutdown"}
	breaks := []string{"jump", "wipe"}
	for range 1 + d.below(4) {
		f := fault{
			at: d.between(0, p.span), kind: oneOf(d, kinds...), lasts: d.between(0, p.baseTTL),
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
	f := fault{at: d.between(p.baseTTL/2, p.span), kind: oneOf(d, breaks...), node: d.below(len(p.nodes))}
	switch f.kind {
	case "jump":
		f.lasts = d.between(0, 2*p.baseTTL)
		if d.chance(30) {
			f.lasts = -f.lasts
		}
	case "wipe":
		f.lasts = p.staysAway(d)
	}
	p.faults = append(p.faults, f)
}

// staysAway returns how long a node stays away after it lost its data. A node of a quorum
// has to stay away for the sum of the longest TTL (here also of a break or a lock-delay),
// MaxLead, and the difference of the clocks. A single node may be back at once.
func (p *plan) staysAway(d *dice) time.Duration {
	if p.backend == "quorum" {
		return 3*p.baseTTL + 2*time.Minute
	}
	return d.between(time.Millisecond, p.baseTTL)
}

// injectFault makes the fault happen.
func (w *world) injectFault(f fault) {
	p := w.processes[f.process]
	w.note("", p, f.kind, f)
	switch f.kind {
	case "pause":
		p.pause(f.lasts)
	case "kill":
		p.kill()
	case "close":
		p.closeWithin(time.Minute, p.close)
	case "shutdown":
		p.closeWithin(time.Minute, p.locks.Shutdown)
	case "cut":
		p.mu.Lock()
		p.cutUntil = max(p.cutUntil, w.now()+f.lasts)
		p.mu.Unlock()
		for i, r := range p.links {
			if w.plan.backend == "quorum" && i != f.node {
				continue
			}
			r.mu.Lock()
			r.cutUntil = max(r.cutUntil, w.now()+f.lasts)
			r.mu.Unlock()
		}
	case "hang":
		w.nodes[f.node].hang(f.lasts)
	case "jump":
		w.nodes[f.node].jump(f.lasts)
		if !w.withstands(f) {
			w.noteShock("", f.kind)
		}
	case "wipe":
		w.nodes[f.node].loseData(f.lasts)
		if !w.withstands(f) {
			w.noteShock("", f.kind)
		}
	}
}

// withstands reports whether the backend tolerates the fault. A quorum tolerates a node
// that lost its data and stays away. It also tolerates a clock that jumps if each lease
// is on more than a bare majority of the nodes. That is so if no message is lost and the
// plan has no other fault.
func (w *world) withstands(f fault) bool {
	return w.plan.backend == "quorum" && (f.kind == "wipe" || w.plan.weather.slow == 0 && len(w.plan.faults) == 1)
}
