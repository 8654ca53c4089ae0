package mongolock

import (
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// A watch knows what this driver has to hear of from others, and so how often to look for
// it: often while a claim waits in a queue, seldom while there are only leases, which may
// be broken, else not at all. It learns from the entries that were stored.
type watch struct {
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

func newWatch() *watch {
	return &watch{hurry: make(chan struct{}, 1), places: map[string]time.Time{}}
}

// note records an entry that was stored.
func (w *watch) note(name string, e *locktable.Entry, now locktable.Instant, inbox string) {
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
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.places[name]
	at := time.Now()
	if place > 0 {
		w.places[name] = at.Add(place)
	} else {
		delete(w.places, name)
	}
	if until := at.Add(hold); hold > 0 && until.After(w.holds) {
		w.holds = until
	}
	if place > 0 && !known {
		w.joined = at
	}
	if place > 0 && !known || hold > 0 && w.paused == 0 {
		select {
		case w.hurry <- struct{}{}:
		default: // it will wake up anyway
		}
	}
}

// pace says how long to pause before the next look; 0 is until hurried. It is a tenth of
// how long we have waited: a hand-over is late by a small part of what it took.
func (w *watch) pace(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.places, func(_ string, until time.Time) bool { return !until.After(now) })
	switch {
	case len(w.places) > 0:
		w.paused = min(max(now.Sub(w.joined)/10, fastest), slowest)
	case w.holds.After(now):
		w.paused = holding
	default:
		w.paused = 0
	}
	return w.paused
}
