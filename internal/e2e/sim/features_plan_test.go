package sim

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Names that only the features above the locks use. leads is a mutex for other steps,
// too.
const (
	leads = "lead"
	ticks = "tick"
)

// drawFeatures adds the features above the locks to one plan of three: All, Once,
// Election, Detach and Attach, Confirm, WithHealth and Watch. It has its own dice, like
// drawResize.
func (p *plan) drawFeatures() {
	d := seeded(p.fates ^ 0xfea7)
	if !d.chance(33) {
		return
	}
	p.features = true
	p.names = append(p.names, namePlan{name: leads, sort: "mutex"}, namePlan{name: ticks, sort: "mutex"})
	atLeastOnce := d.chance(50)
	for _, w := range []struct {
		percent int
		draw    func(d *dice, process int) []step
	}{
		{50, p.drawElection},
		{50, func(d *dice, _ int) []step { return p.drawTicks(d, atLeastOnce) }},
		{40, func(d *dice, _ int) []step { return p.drawAll(d) }},
		{40, func(d *dice, _ int) []step { return p.drawWatch(d) }},
	} {
		if !d.chance(w.percent) {
			continue
		}
		for i := range p.processes {
			if steps := w.draw(d, i); len(steps) > 0 && d.chance(80) {
				p.processes[i].sessions = append(p.processes[i].sessions, steps)
			}
		}
	}
	p.eachStep(func(s *step) { p.drawLease(d, s) })
	p.drawCrowd()
}

// crowded are the names of a crowd: a pool of two permits, and two mutexes.
var crowded = []namePlan{{"crowd:a", "permits", 2}, {"crowd:m", "mutex", 0}, {"crowd:z", "mutex", 0}}

// drawCrowd adds to one plan of four with features a crowd that takes two or three names
// at the same time, or one. The names are so busy that callers come to the end of their
// polite rounds. It has its own dice, like drawResize.
func (p *plan) drawCrowd() {
	d := seeded(p.fates ^ 0xc20d)
	if !d.chance(25) {
		return
	}
	p.names = append(p.names, crowded...)
	brief, handsOff := 10*p.weather.high, d.chance(50)
	for i := range p.processes {
		if handsOff {
			p.processes[i].handoff = -1
		}
		for range 2 {
			var steps []step
			for range 4 + d.below(6) {
				k := d.below(len(crowded))
				names := slices.Concat(crowded[k:], crowded[:k])
				s := p.exclusively("all", names[0].name)
				s.sort, s.weight, s.limit = names[0].claim()
				s.after, s.hold = d.between(0, brief/4), d.between(0, brief)
				switch d.below(5) {
				case 0, 1: // one name, and no other
					s.verb = "lock"
				case 2:
					s.others = []string{names[1].name, names[2].name}
				default:
					s.others = []string{names[1].name}
				}
				steps = append(steps, s)
			}
			p.processes[i].sessions = append(p.processes[i].sessions, steps)
		}
	}
}

// claim returns the kind, the weight and the limit of a claim for such a name.
func (n namePlan) claim() (sort string, weight, limit int) {
	if n.sort == "permits" {
		return "permits", 1, n.limit
	}
	return "mutex", driver.Exclusive, driver.Unlimited
}

// exclusively returns a step that locks the whole name.
func (p *plan) exclusively(verb, name string) step {
	return step{
		verb: verb, name: name, sort: "mutex", weight: driver.Exclusive, limit: driver.Unlimited,
		ttl: p.unit, timeout: never, cancel: never,
	}
}

// drawLease draws what a user does with its lease.
func (p *plan) drawLease(d *dice, s *step) {
	if (s.verb != "lock" && s.verb != "try") || s.do {
		return
	}
	s.usesTimeAfterLoss = d.chance(30)
	switch d.below(6) {
	case 0:
		s.confirms = 1 + d.below(2)
	case 1, 2:
		s.detaches = true
		s.detachedFor = one(d, 0, d.between(0, p.unit/2), d.between(0, 2*p.unit), never) // never: not attached again
		s.to = d.below(len(p.processes))
		s.maxHold = 0 // it belongs to the lease, and Attach does not know it
		s.hold = max(s.hold, time.Millisecond)
	case 3:
		s.health = true
		s.sick = one(d, never, d.between(0, p.unit))
	}
}

// drawElection draws one instance of an election. It leads a few times, and sets its
// value while it waits, or leads. Other steps lock the name as a mutex.
func (p *plan) drawElection(d *dice, _ int) []step {
	if d.chance(20) {
		s := p.exclusively("lock", leads)
		s.after, s.hold = d.between(0, p.unit), d.between(0, p.unit)
		return []step{s, p.drawLook(d)}
	}
	s := p.exclusively("elect", leads)
	s.after = d.between(0, p.unit/4)
	s.hold = d.between(0, p.unit)
	s.timeout = d.between(p.unit, 5*p.unit)
	s.ends = one(d, "", "", "done", "resigns", "own error", "resigns with an error")
	s.sets = d.between(0, p.unit)
	s.stays = d.chance(25)
	if s.stays {
		s.ends, s.timeout = "", p.span+5*p.unit+time.Minute
	}
	return []step{s, p.drawLook(d)}
}

// drawLook draws a user who asks for the leader.
func (p *plan) drawLook(d *dice) step {
	s := p.exclusively("leader", leads)
	s.after, s.timeout = d.between(0, p.unit), d.between(p.unit/4, p.unit)
	return s
}

// drawTicks draws one instance that does the tasks of a schedule.
func (p *plan) drawTicks(d *dice, atLeastOnce bool) (steps []step) {
	for k := range 1 + d.below(4) {
		s := p.exclusively("once", ticks)
		s.key = string(rune('a' + k))
		s.after, s.hold = d.between(0, p.unit/2), one(d, 0, d.between(0, p.unit/2))
		s.atLeastOnce, s.do = atLeastOnce, true
		s.ends = one(d, "", "", "own error")
		switch d.below(4) {
		case 0:
			s.cancel = d.between(0, p.unit)
		case 1:
			s.cancel = s.hold/2 + d.between(0, 4*p.weather.high)
		}
		steps = append(steps, s)
	}
	return steps
}

// drawAll draws a session that takes several names at the same time.
func (p *plan) drawAll(d *dice) (steps []step) {
	for range 1 + d.below(3) {
		s := p.exclusively("all", p.names[0].name)
		s.after, s.hold = d.between(0, p.unit/4), d.between(0, p.unit/2)
		s.others = []string{leads}
		if d.chance(50) {
			s.others = append(s.others, p.names[len(p.names)-1].name)
		}
		if d.chance(30) {
			s.tries = true
		}
		if d.chance(30) {
			s.timeout = d.between(0, p.unit)
		}
		steps = append(steps, s)
	}
	return steps
}

// drawWatch draws a user who watches a name, until the schedule ends or for a while.
func (p *plan) drawWatch(d *dice) []step {
	s := p.exclusively("watch", one(d, p.names...).name)
	s.hold = one(d, never, never, d.between(0, 3*p.unit))
	return []step{s}
}

// lasts returns how long a step may block its name, besides its hold.
func (s step) lasts(p *plan) time.Duration {
	d := max(s.detachedFor, 0)
	if s.stays {
		d += p.span + 2*time.Minute
	} else if s.verb == "elect" {
		d += s.timeout
	}
	return d
}
