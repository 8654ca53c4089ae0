package mongolock

import (
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// A poller knows what this driver has to hear of from others, and so how often to look
// for it: often while a claim waits in a queue, seldom while there are only leases, which
// may be broken, else not at all. It learns from the entries that were stored.
type poller struct {
	hurry chan struct{} // has room for one: the pace has changed, ask again

	mu     sync.Mutex
	places map[string]time.Time // names in whose queue we stand, and until when at the most
	joined time.Time            // when the last of them was taken
	holds  time.Time            // when the last of our leases ends
	paused time.Duration        // the pace that was last given out; 0 is to sleep until hurried
}

const (
	fastest = 5 * time.Millisecond
	slowest = 250 * time.Millisecond
	holding = time.Second // while we only hold
)

func newPoller() *poller {
	return &poller{hurry: make(chan struct{}, 1), places: map[string]time.Time{}}
}

// note records an entry that was stored.
func (p *poller) note(name string, e *locktable.Entry, now locktable.Instant, inbox string) {
	var place, hold time.Duration
	for _, q := range e.Queue {
		if q.Inbox == inbox {
			place = max(place, now.Until(q.Expires))
		}
	}
	for _, h := range e.Holders {
		if h.Inbox == inbox && !h.Token.IsZero() {
			hold = max(hold, now.Until(h.Expires))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.places[name]
	at := time.Now()
	if place > 0 {
		p.places[name] = at.Add(place)
	} else {
		delete(p.places, name)
	}
	if until := at.Add(hold); hold > 0 && until.After(p.holds) {
		p.holds = until
	}
	if place > 0 && !known {
		p.joined = at
	}
	if place > 0 && !known || hold > 0 && p.paused == 0 {
		select {
		case p.hurry <- struct{}{}:
		default: // it will wake up anyway
		}
	}
}

// pace says how long to pause before the next look; 0 is until hurried. It is a tenth of
// how long we have waited: a hand-over is late by a small part of what it took.
func (p *poller) pace(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.places, func(_ string, until time.Time) bool { return !until.After(now) })
	switch {
	case len(p.places) > 0:
		p.paused = min(max(now.Sub(p.joined)/10, fastest), slowest)
	case p.holds.After(now):
		p.paused = holding
	default:
		p.paused = 0
	}
	return p.paused
}
