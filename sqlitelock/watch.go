package sqlitelock

import (
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A watch knows what this driver has to hear of from other processes, and so how often to
// look: often while a claim waits in a queue, seldom while there are only leases (which
// may be broken), or names that are watched, else not at all.
//
// It learns from what transactions leave in the entries. It may believe in a place or a
// lease that somebody else has ended, until it would have expired: then a few looks are
// for nothing.
type watch struct {
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

func newWatch() *watch {
	return &watch{
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
func (w *watch) ring() { wake(w.rings) }

// note records what a step did to our places and our leases.
func (o *outcome) note(e *locktable.Entry, m locktable.Moves, inbox string) {
	for _, w := range m.Left {
		if w.Inbox == inbox {
			o.places = append(o.places, place{token: w.Token})
		}
	}
	for _, ws := range [][]locktable.Waiter{m.Joined, m.Kept} {
		for _, w := range ws {
			if w.Inbox == inbox {
				o.places = append(o.places, place{token: w.Token, lapses: w.Expires})
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
func (w *watch) apply(places []place, holds locktable.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = max(w.holds, holds)
	taken := false
	for _, p := range places { // before any is left: a place that is kept shows up as left and taken
		if _, known := w.places[p.token]; !known && p.lapses != 0 {
			taken = true
		}
	}
	for _, p := range places {
		if p.lapses == 0 {
			delete(w.places, p.token)
		} else {
			w.places[p.token] = p.lapses
		}
	}
	if taken {
		w.joined = time.Now()
	}
	if taken || w.paused == 0 && holds > 0 {
		wake(w.hurry)
	}
}

// relies notes whether the holders that will pass a name on to us can ring our bell. It
// has to be known before: a hand-over comes once, and a driver that learns from a signal
// without a ring has learned too late.
func (w *watch) relies(onBell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hears = onBell
}

// follow notes that names are watched, or no longer are.
func (w *watch) follow(begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !begins {
		w.follows--
		return
	}
	if w.follows++; w.paused == 0 {
		wake(w.hurry)
	}
}

// heard notes signals that came in, and whether it was a ring that made us look for them.
// A driver that finds signals without a ring is out of earshot of their sender, or was
// quicker than the bell, and the ring is still to come.
func (w *watch) heard(signals []driver.Signal, rung bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := 0 // the others are for who watches, and may come from anybody
	for _, s := range signals {
		if !locktable.IsChange(s) {
			own++
		}
		w.holds = max(w.holds, w.places[s.Token]) // a grant that somebody passed on lasts as long as the place
		delete(w.places, s.Token)
	}
	if own > 0 || rung && len(signals) == 0 {
		w.hears = rung
	}
}

// pace says how long to pause before the next look; 0 is until hurried.
func (w *watch) pace(now locktable.Instant, fast time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.pruned) > time.Second { // not each time: there may be thousands
		w.pruned = time.Now()
		maps.DeleteFunc(w.places, func(_ driver.Token, lapses locktable.Instant) bool { return lapses <= now })
	}
	waited := time.Since(w.joined)
	switch {
	case len(w.places) > 0 && !w.hears && waited < eagerFor:
		w.paused = min(eagerPace, fast)
	case len(w.places) > 0 && !w.hears && waited < restless:
		w.paused = fast
	case len(w.places) > 0 && !w.hears:
		w.paused = 2 * fast
	case len(w.places) > 0 || w.holds > now || w.follows > 0:
		w.paused = slowPace
	default:
		w.paused = 0
	}
	return w.paused
}
