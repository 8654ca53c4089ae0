package sqlitelock

import (
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A poller knows what this driver has to hear of from other processes, and so how often
// to look: often while a claim waits in a queue, seldom while there are only leases
// (which may be broken), or names that are watched, else not at all.
//
// It learns from what transactions leave in the entries. It may believe in a place or a
// lease that somebody else has ended, until it would have expired: then a few looks are
// for nothing.
type poller struct {
	hurry chan struct{} // has room for one: the pace has changed, ask again
	rings chan struct{} // has room for one: somebody rang

	mu      sync.Mutex                         // protects the rest
	places  map[driver.Token]locktable.Instant // our places in queues, and when they lapse
	holds   locktable.Instant                  // when the last of our leases expires
	joined  time.Time                          // when a place was last taken
	pruned  time.Time                          // when lapsed places were last dropped
	paused  time.Duration                      // the pace that was last given out; 0 is to sleep until hurried
	hears   bool                               // signals come with a ring; false until that is known
	follows int                                // there are names that are watched
}

// A place in a queue that was taken or kept, or, with no time of its lapse, left.
type place struct {
	token  driver.Token
	lapses locktable.Instant
}

const (
	slowPace  = 100 * time.Millisecond // while we only hold, or follow, and while the doorbell works
	eagerPace = time.Millisecond       // for a place that was just taken: many holders take milliseconds
	eagerFor  = 20 * time.Millisecond
	restless  = time.Second // after that at half the pace: long waits must cost next to nothing
)

func newPoller() *poller {
	return &poller{
		hurry: make(chan struct{}, 1), rings: make(chan struct{}, 1),
		places: map[driver.Token]locktable.Instant{},
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will wake up anyway
	}
}

// ring is called when the doorbell rings.
func (p *poller) ring() { wake(p.rings) }

// note records what a step did to our places and our leases.
func (o *outcome) note(e *locktable.Entry, m locktable.Moves, inbox string) {
	for _, p := range m.Left {
		if p.Inbox == inbox {
			o.places = append(o.places, place{token: p.Token})
		}
	}
	for _, ws := range [][]locktable.Waiter{m.Joined, m.Kept} {
		for _, p := range ws {
			if p.Inbox == inbox {
				o.places = append(o.places, place{token: p.Token, lapses: p.Expires})
			}
		}
	}
	for _, h := range e.Holders {
		if len(m.Joined)+len(m.Kept) > 0 && h.Inbox != inbox && len(o.ringers) < maxRingers {
			o.ringers = append(o.ringers, h.Inbox)
		}
		if h.Inbox == inbox && !h.Token.IsZero() {
			o.holds = max(o.holds, h.Expires)
			o.places = append(o.places, place{token: h.Token}) // it may have been granted by another process
		}
	}
}

// maxRingers is how many holders of a name are looked for: they are mostly alike.
const maxRingers = 4

// apply takes over what a transaction did, once it is stored.
func (p *poller) apply(places []place, holds locktable.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = max(p.holds, holds)
	taken := false
	for _, x := range places { // before any is left: a place that is kept shows up as left and taken
		if _, known := p.places[x.token]; !known && x.lapses != 0 {
			taken = true
		}
	}
	for _, x := range places {
		if x.lapses == 0 {
			delete(p.places, x.token)
		} else {
			p.places[x.token] = x.lapses
		}
	}
	if taken {
		p.joined = time.Now()
	}
	if taken || p.paused == 0 && holds > 0 {
		wake(p.hurry)
	}
}

// relies notes whether the holders that will pass a name on to us can ring our bell. It
// has to be known before: a hand-over comes once, and a driver that learns from a signal
// without a ring has learned too late.
func (p *poller) relies(onBell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hears = onBell
}

// follow notes that names are watched, or no longer are.
func (p *poller) follow(begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !begins {
		p.follows--
		return
	}
	if p.follows++; p.paused == 0 {
		wake(p.hurry)
	}
}

// heard notes signals that came in, and whether it was a ring that made us look for them.
// A driver that finds signals without a ring is out of earshot of their sender, or was
// quicker than the bell, and the ring is still to come.
func (p *poller) heard(signals []driver.Signal, rung bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0 // the others are for who watches, and may come from anybody
	for _, s := range signals {
		if !locktable.IsChange(s) {
			own++
		}
		p.holds = max(p.holds, p.places[s.Token]) // a grant that somebody passed on lasts as long as the place
		delete(p.places, s.Token)
	}
	if own > 0 || rung && len(signals) == 0 {
		p.hears = rung
	}
}

// pace says how long to pause before the next look; 0 is until hurried.
func (p *poller) pace(now locktable.Instant, fast time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.pruned) > time.Second { // not each time: there may be thousands
		p.pruned = time.Now()
		maps.DeleteFunc(p.places, func(_ driver.Token, lapses locktable.Instant) bool { return lapses <= now })
	}
	waited := time.Since(p.joined)
	switch {
	case len(p.places) > 0 && !p.hears && waited < eagerFor:
		p.paused = min(eagerPace, fast)
	case len(p.places) > 0 && !p.hears && waited < restless:
		p.paused = fast
	case len(p.places) > 0 && !p.hears:
		p.paused = 2 * fast
	case len(p.places) > 0 || p.holds > now || p.follows > 0:
		p.paused = slowPace
	default:
		p.paused = 0
	}
	return p.paused
}
