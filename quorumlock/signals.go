package quorumlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// listeners are those who hear our signals.
type listeners struct {
	mu  sync.Mutex // protects all; never held while one is called
	all []*func(driver.Signal)
}

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) {
	l := &d.heard
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clone(l.all), &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(g *func(driver.Signal)) bool { return g == &f })
	}
}

func (l *listeners) say(s driver.Signal) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)(s)
	}
}

// moment is how long the first "granted" waits for those of the other nodes before it becomes a "look".
const moment = 3 * time.Millisecond

// signaled hears a node. "Look" and "lost" are passed on: the client asks, or checks, and then a majority
// answers. "Granted" is passed on as such only when a majority has said so, with one fence.
func (d *Driver) signaled(i int, s driver.Signal) {
	if s.Kind != driver.Granted {
		if s.Kind == driver.Lost {
			if p := d.placed.find(s.Token); p != nil {
				p.mu.Lock()
				p.nodes[i] = standing{}
				p.mu.Unlock()
			}
		}
		d.heard.say(s)
		return
	}
	p := d.placed.find(s.Token)
	if p == nil {
		return // it waits no longer: a majority has granted it already
	}
	p.mu.Lock()
	if s.Fence >= p.nodes[i].heard.Fence {
		p.nodes[i].heard = driver.Grant{Fence: s.Fence, Run: s.Run}
	}
	p.mu.Unlock()
	d.weigh(p)
}

// weigh says what the signals and answers so far amount to.
func (d *Driver) weigh(p *place) {
	p.mu.Lock()
	votes := make(ballots, len(p.nodes))
	n, news := 0, 0
	for i := range p.nodes {
		if g, ok := p.nodes[i].granted(); ok {
			votes[i] = vote[driver.Grant]{in: true, value: g}
			n++
			if g == p.nodes[i].heard {
				news++
			}
		}
	}
	if news == 0 { // what it was answered, the caller knows
		p.mu.Unlock()
		return
	}
	c := p.claim
	grant, agreed := d.agreed(votes)
	switch {
	case agreed && p.said >= grant.Fence:
		p.mu.Unlock()
		return
	case agreed && c.TTL >= c.WaitTTL: // else a grant that was an answer may be over before the listener thinks so
		p.said = max(p.said, grant.Fence)
		p.quiet()
		p.mu.Unlock()
		d.pass(p, c, grant, votes)
		return
	case n >= d.majority: // whoever asks makes them agree
		p.quiet()
		p.mu.Unlock()
		d.heard.say(driver.Signal{Kind: driver.Look, Token: c.Token})
		return
	case n > 0 && p.look == nil:
		p.look = time.AfterFunc(moment, func() { d.heard.say(driver.Signal{Kind: driver.Look, Token: c.Token}) })
	}
	p.mu.Unlock()
}

// pass says that a majority has granted. Permits are counted again first, as they are when they ask.
func (d *Driver) pass(p *place, c driver.Claim, grant driver.Grant, votes ballots) {
	said := driver.Signal{Kind: driver.Granted, Token: c.Token, Fence: grant.Fence, Run: grant.Run}
	if !counts(c) {
		d.heard.say(said)
		return
	}
	if d.begin(d.life) != nil {
		return
	}
	d.work.Go(func() {
		defer d.work.Done() // of begin
		ctx, cancel := context.WithTimeout(d.life, c.WaitTTL)
		defer cancel()
		a := &attempt{d: d, claim: c, place: p}
		if a.recount(ctx, grant, votes) != nil {
			said = driver.Signal{Kind: driver.Look, Token: c.Token}
		}
		d.heard.say(said)
	})
}
