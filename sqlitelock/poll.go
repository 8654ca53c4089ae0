package sqlitelock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

const (
	slowPace  = 100 * time.Millisecond // while we only hold, or follow, and while the doorbell works
	eagerPace = time.Millisecond       // for a place that was just taken: many holders take milliseconds
	eagerFor  = 20 * time.Millisecond
	restless  = time.Second // after that at half the pace: long waits must cost next to nothing
)

// newPoller looks for signals when the doorbell rings, and at the pace of what this
// driver waits for and holds.
func newPoller(t *table) *engine.Poller {
	return &engine.Poller{Claims: t.claims, Pace: t.pace, Losses: slowPace, LookNow: t.rings, Look: t.lookAtSignals}
}

// lookAtSignals delivers what came in. When the file is no longer the one that was
// opened, all claims are told to look, once: their next call says what is wrong.
func (t *table) lookAtSignals(ctx context.Context, _ []engine.Claim) error {
	rung := t.rung.Swap(false)
	r, err := t.reader.enter(ctx, t.busyTimeout)
	if err != nil {
		return err
	}
	signals, err := r.receive(t.inbox)
	whole := t.files.check(r.conn) == nil
	t.reader.leave()
	t.heard(signals, rung)
	for _, s := range signals {
		t.deliver(s)
	}
	if !whole && !t.replaced {
		t.deliver(driver.Signal{Kind: driver.SignalLook})
	}
	t.replaced = !whole
	return err
}

// pace is how long to pause for a place in a queue.
func (t *table) pace(waited time.Duration, _ int) time.Duration {
	switch {
	case t.hears.Load():
		return slowPace
	case waited < eagerFor:
		return min(eagerPace, t.Poll)
	case waited < restless:
		return t.Poll
	default:
		return 2 * t.Poll
	}
}

// ring is called when the doorbell rings.
func (t *table) ring() {
	t.rung.Store(true)
	select {
	case t.rings <- struct{}{}:
	default: // it will look anyway
	}
}

// heard notes signals that came in, and whether it was a ring that made us look for them.
// A driver that finds signals without a ring is out of earshot of their sender, or was
// quicker than the bell, and the ring is still to come.
func (t *table) heard(signals []driver.Signal, rung bool) {
	own := 0 // the others are for who watches, and may come from anybody
	for _, s := range signals {
		if !locktable.IsChange(s) {
			own++
		}
		t.claims.Heard(s)
	}
	if own > 0 || rung && len(signals) == 0 {
		t.hears.Store(rung)
	}
}

// maxRingers is how many holders of a name are looked for: they are mostly alike.
const maxRingers = 4

// noteRingers records who will pass on to us what we wait for.
func (o *outcome) noteRingers(e *locktable.Entry, m locktable.Moves, inbox string) {
	for _, h := range e.Holders {
		if len(m.Joined)+len(m.Kept) > 0 && h.Inbox != inbox && len(o.ringers) < maxRingers {
			o.ringers = append(o.ringers, h.Inbox)
		}
	}
}
