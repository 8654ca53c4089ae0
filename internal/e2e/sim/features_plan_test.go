package sim

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Names that only the features above the locks use. Other steps also lock electionName as
// a mutex.
const (
	electionName = "lead"
	onceName     = "tick"
)

// drawFeatures adds the features above the locks to one plan of three: All, Once,
// Election, Detach and Attach, Confirm, WithHealth and Watch. It has its own dice, like
// drawResizedLimit.
func (p *plan) drawFeatures() {
	d := diceOf(p.fateSeed ^ 0xfea7)
	if !d.chance(33) {
		return
	}
	p.features = true
	p.names = append(p.names, namePlan{name: electionName, kind: "mutex"}, namePlan{name: onceName, kind: "mutex"})
	atLeastOnce := d.chance(50)
	for _, w := range []struct {
		percent int
		draw    func(d *dice, process int) []step
	}{
		{50, p.drawElection},
		{50, func(d *dice, _ int) []step { return p.drawOnce(d, atLeastOnce) }},
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

// drawCrowd adds a crowd to one plan of four with features. The crowd takes one to three
// names at the same time. The names are so busy that callers come to the end of their
// polite rounds. drawCrowd has its own dice, like drawResizedLimit.
func (p *plan) drawCrowd() {
	d := diceOf(p.fateSeed ^ 0xc20d)
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
				s := p.exclusiveStep("all", names[0].name)
				s.kind, s.weight, s.limit = names[0].claim()
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
func (n namePlan) claim() (kind string, weight, limit int) {
	if n.kind == "permits" {
		return "permits", 1, n.limit
	}
	return "mutex", driver.Exclusive, driver.Unlimited
}

// exclusiveStep returns a step that locks the whole name.
func (p *plan) exclusiveStep(verb, name string) step {
	return step{
		verb: verb, name: name, kind: "mutex", weight: driver.Exclusive, limit: driver.Unlimited,
		ttl: p.baseTTL, timeout: never, cancel: never,
	}
}

// drawLease draws what a user does with its lease.
func (p *plan) drawLease(d *dice, s *step) {
	if (s.verb != "lock" && s.verb != "try") || s.usesDo {
		return
	}
	s.usesTimeAfterLoss = d.chance(30)
	switch d.below(6) {
	case 0:
		s.confirms = 1 + d.below(2)
	case 1, 2:
		s.detaches = true
		s.detachedFor = oneOf(d, 0, d.between(0, p.baseTTL/2), d.between(0, 2*p.baseTTL), never) // never: no Attach
		s.attacher = d.below(len(p.processes))
		s.maxHold = 0 // Attach does not know the maximum hold of the lease
		s.hold = max(s.hold, time.Millisecond)
	case 3:
		s.health = true
		s.unhealthyAfter = oneOf(d, never, d.between(0, p.baseTTL))
	}
}

// drawElection draws one instance of an election. The instance leads a few times, and
// sets its value while it waits or leads. Other steps lock the name as a mutex.
func (p *plan) drawElection(d *dice, _ int) []step {
	if d.chance(20) {
		s := p.exclusiveStep("lock", electionName)
		s.after, s.hold = d.between(0, p.baseTTL), d.between(0, p.baseTTL)
		return []step{s, p.drawLeaderQuery(d)}
	}
	s := p.exclusiveStep("elect", electionName)
	s.after = d.between(0, p.baseTTL/4)
	s.hold = d.between(0, p.baseTTL)
	s.timeout = d.between(p.baseTTL, 5*p.baseTTL)
	s.outcome = oneOf(d, "", "", "done", "resigns", "own error", "resigns with an error")
	s.setValueAfter = d.between(0, p.baseTTL)
	s.keepsLeading = d.chance(25)
	if s.keepsLeading {
		s.outcome, s.timeout = "", p.span+5*p.baseTTL+time.Minute
	}
	return []step{s, p.drawLeaderQuery(d)}
}

// drawLeaderQuery draws a user who asks for the leader.
func (p *plan) drawLeaderQuery(d *dice) step {
	s := p.exclusiveStep("leader", electionName)
	s.after, s.timeout = d.between(0, p.baseTTL), d.between(p.baseTTL/4, p.baseTTL)
	return s
}

// drawOnce draws one instance that does the tasks of a schedule.
func (p *plan) drawOnce(d *dice, atLeastOnce bool) (steps []step) {
	for k := range 1 + d.below(4) {
		s := p.exclusiveStep("once", onceName)
		s.key = string(rune('a' + k))
		s.after, s.hold = d.between(0, p.baseTTL/2), oneOf(d, 0, d.between(0, p.baseTTL/2))
		s.atLeastOnce, s.usesDo = atLeastOnce, true
		s.outcome = oneOf(d, "", "", "own error")
		switch d.below(4) {
		case 0:
			s.cancel = d.between(0, p.baseTTL)
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
		s := p.exclusiveStep("all", p.names[0].name)
		s.after, s.hold = d.between(0, p.baseTTL/4), d.between(0, p.baseTTL/2)
		s.others = []string{electionName}
		if d.chance(50) {
			s.others = append(s.others, p.names[len(p.names)-1].name)
		}
		if d.chance(30) {
			s.usesTry = true
		}
		if d.chance(30) {
			s.timeout = d.between(0, p.baseTTL)
		}
		steps = append(steps, s)
	}
	return steps
}

// drawWatch draws a user who watches a name, until the schedule ends or for a while.
func (p *plan) drawWatch(d *dice) []step {
	s := p.exclusiveStep("watch", oneOf(d, p.names...).name)
	s.hold = oneOf(d, never, never, d.between(0, 3*p.baseTTL))
	return []step{s}
}

// lasts returns how long a step may block its name, besides its hold.
func (s step) lasts(p *plan) time.Duration {
	d := max(s.detachedFor, 0)
	if s.keepsLeading {
		d += p.span + 2*time.Minute
	} else if s.verb == "elect" {
		d += s.timeout
	}
	return d
}
