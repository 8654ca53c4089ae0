package sim

import (
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A plan is the whole content of a seed. It is drawn before anything runs, so that a seed
// always makes the same plan, whatever the product does.
type plan struct {
	backend   string // "memory", "store", "quorum" or "redis"
	baseTTL   time.Duration
	weather   weather
	fateSeed  uint64 // of the fates of messages: each link has its own dice
	nodes     []nodePlan
	processes []processPlan
	names     []namePlan
	faults    []fault
	span      time.Duration // the time after which the weather is calm and no fault lasts
	features  bool          // it also uses the features above the locks
}

type nodePlan struct {
	ahead time.Duration // its clock
	ppm   int64
}

type processPlan struct {
	handoff  time.Duration // Options.HandoffWindow
	ahead    time.Duration // its clock; a quorum takes tickets from it
	sessions [][]step      // goroutines
}

// A namePlan says what kind of lock a name is.
type namePlan struct {
	name  string
	kind  string // "mutex", "readers" or "permits"
	limit int    // of permits
}

// A step is one call of a user.
type step struct {
	after   time.Duration // after the previous step
	verb    string        // "lock", "try", "force", "break", "look"; see features_plan_test.go for the rest
	name    string
	kind    string // "mutex", "reader" or "permits"
	weight  int
	limit   int
	usesDo  bool // through Do or TryDo
	ttl     time.Duration
	delay   time.Duration // the lock-delay, or the delay of a break
	minHold time.Duration
	maxHold time.Duration
	hold    time.Duration
	timeout time.Duration // ctx's deadline, never if it has none
	cancel  time.Duration // when ctx is cancelled; never if it is not
	feature
}

// A feature says which features above the locks a step uses.
type feature struct {
	others      []string // of "all": further names
	usesTry     bool     // of "all": through TryLock
	key         string   // of "once"
	atLeastOnce bool
	// outcome is the end of the function of "once" or "elect": "", "done", "resigns",
	// "own error" or "resigns with an error".
	outcome           string
	setValueAfter     time.Duration // when "elect" sets a value
	keepsLeading      bool          // of "elect": it leads until everything works again, and longer
	confirms          int           // how often a holder confirms
	detaches          bool
	detachedFor       time.Duration // never if it is not attached again
	attacher          int           // the process that attaches it
	usesTimeAfterLoss bool          // after a loss, it stops at LostError.StopBy
	health            bool
	unhealthyAfter    time.Duration // when a holder's health function begins to fail; never if it does not
}

func (s step) String() string {
	out := fmt.Sprintf("%s %s %d/%d ttl %v hold %v", s.verb, s.kind, s.weight, s.limit, s.ttl, s.hold)
	for _, o := range []struct {
		name string
		d    time.Duration
	}{{"delay", s.delay}, {"min hold", s.minHold}, {"at most", s.maxHold}, {"timeout", s.timeout}, {"cancelled", s.cancel}} {
		if o.d > 0 {
			out += fmt.Sprintf(" %s %v", o.name, o.d)
		}
	}
	if s.usesDo {
		out += " (Do)"
	}
	return out
}

// drawPlan draws a plan for a kind of backend.
func drawPlan(d *dice, kind string, nodes int) *plan {
	p := &plan{backend: kind, baseTTL: oneOf(d, 600*time.Millisecond, 3*time.Second, 30*time.Second)}
	if kind == "quorum" {
		p.baseTTL = oneOf(d, 3*time.Second, 30*time.Second)
	}
	switch d.below(10) {
	case 0, 1:
		p.weather = calm()
	case 2, 3, 4:
		p.weather = wideArea(p.baseTTL)
	case 5, 6, 7:
		p.weather = rough(p.baseTTL)
	default:
		p.weather = foul(p.baseTTL)
	}
	p.span = d.between(p.baseTTL, 4*p.baseTTL)
	p.fateSeed = uint64(d.below(1 << 30))
	for range nodes {
		n := nodePlan{ppm: int64(d.below(2*maxDrift)) - maxDrift}
		if d.chance(50) {
			n.ahead = d.between(-time.Minute, time.Minute)
		}
		p.nodes = append(p.nodes, n)
	}
	if kind == "quorum" && d.chance(70) { // like maintained clocks
		for i := range p.nodes {
			p.nodes[i].ahead = d.between(0, 20*time.Millisecond)
		}
	}
	p.drawNames(d)
	p.drawProcesses(d)
	p.drawResizedLimit()
	p.drawLockDelays()
	if d.chance(60) {
		p.drawFaults(d)
	}
	p.drawFeatures()
	return p
}

// The names differ in details that a backend must not fold, cut or join.
func (p *plan) drawNames(d *dice) {
	all := []string{"job", "JOB", "job{1}", "job%", "jöb"}
	for i := range 1 + d.below(3) {
		n := namePlan{name: all[(i+d.below(2))%len(all)], kind: oneOf(d, "mutex", "mutex", "readers", "permits")}
		if n.kind == "permits" {
			n.limit = 1 + d.below(3)
		}
		p.names = append(p.names, n)
	}
}

func (p *plan) drawProcesses(d *dice) {
	violent := d.chance(25) // some steps force and break
	plain := d.chance(50)   // all claims have the same options, so that leases are passed on locally
	for range 2 + d.below(3) {
		w := processPlan{handoff: oneOf(d, -1, 0, 0, 50*time.Millisecond)}
		if d.chance(30) {
			w.ahead = d.between(-time.Second, time.Second)
		}
		for range 1 + d.below(3) {
			var steps []step
			for range 1 + d.below(4) {
				steps = append(steps, p.drawStep(d, violent, plain))
			}
			w.sessions = append(w.sessions, steps)
		}
		p.processes = append(p.processes, w)
	}
}

// In one plan of three, drawResizedLimit lets one process use a larger or smaller limit
// for a semaphore than the others, as in a rolling deployment. It has its own dice, so
// that the rest of the plan stays the same.
func (p *plan) drawResizedLimit() {
	d := diceOf(p.fateSeed ^ 0x5eed)
	by := oneOf(d, -1, 1, 2)
	if !d.chance(33) {
		return
	}
	for _, steps := range p.processes[0].sessions {
		for i := range steps {
			if s := &steps[i]; s.kind == "permits" {
				s.limit = max(1, s.limit+by)
				s.weight = min(s.weight, s.limit)
			}
		}
	}
}

// In one plan of four, drawLockDelays gives a lock-delay to the steps with a minimum
// hold. It has its own dice, too.
func (p *plan) drawLockDelays() {
	d := diceOf(p.fateSeed ^ 0x317ed)
	if !d.chance(25) {
		return
	}
	p.eachStep(func(s *step) {
		if s.minHold > 0 && s.verb != "force" {
			s.delay = d.between(0, p.baseTTL)
		}
	})
}

func (p *plan) eachStep(f func(s *step)) {
	for i := range p.processes {
		for _, steps := range p.processes[i].sessions {
			for k := range steps {
				f(&steps[k])
			}
		}
	}
}

func (p *plan) drawStep(d *dice, violent, plain bool) step {
	n := oneOf(d, p.names...)
	s := step{name: n.name, kind: "mutex", weight: driver.Exclusive, limit: driver.Unlimited, verb: "lock", ttl: p.baseTTL, timeout: never, cancel: never}
	switch {
	case n.kind == "readers" && d.chance(70):
		s.kind, s.weight = "reader", 1
	case n.kind == "permits" && d.chance(90):
		s.kind, s.limit = "permits", n.limit
		s.weight = 1 + d.below(n.limit)
	}
	s.after = oneOf(d, 0, d.between(0, 5*time.Millisecond), d.between(0, p.baseTTL/4), d.between(0, p.baseTTL))
	s.hold = oneOf(d, 0, d.between(0, 2*time.Millisecond), d.between(0, p.baseTTL/4), d.between(0, p.baseTTL), d.between(0, 3*p.baseTTL))
	if d.chance(25) {
		s.verb = "try"
	}
	s.usesDo = d.chance(25) && (s.kind != "permits" || s.weight == 1)
	switch d.below(8) {
	case 0, 1:
		s.timeout = d.between(0, p.baseTTL)
	case 2:
		s.cancel = d.between(0, p.baseTTL)
	case 3:
		s.cancel = d.between(0, 4*p.weather.high)
	}
	if !plain {
		p.drawOptions(d, &s)
	}
	if violent && d.chance(20) {
		s.verb, s.usesDo = oneOf(d, "force", "break", "look"), false
		if s.verb == "force" {
			s.kind, s.weight, s.limit = "mutex", driver.Exclusive, driver.Unlimited
		}
		s.delay = oneOf(d, 0, p.baseTTL/4, 2*p.baseTTL)
		if s.verb != "force" {
			s.timeout = d.between(0, p.baseTTL) // the root package bounds only claims
		}
	}
	return s
}

func (p *plan) drawOptions(d *dice, s *step) {
	switch d.below(10) {
	case 0:
		s.ttl = 2 * p.baseTTL
	case 1:
		s.delay = d.between(0, p.baseTTL)
	case 2:
		s.minHold = d.between(0, p.baseTTL)
	case 3:
		s.maxHold = d.between(p.baseTTL/2, 2*p.baseTTL)
	}
}
