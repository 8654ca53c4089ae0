package sqlitelock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

const (
	slowPace      = 100 * time.Millisecond // pause between polls if no claim waits, or the doorbell works
	eagerPace     = time.Millisecond       // pause in the first eagerFor of a wait: many holders need only milliseconds
	eagerFor      = 20 * time.Millisecond
	halfPaceAfter = time.Second // after this wait a claim polls half as often, so that long waits cost little
)

// newPoller makes the poller for signals. It polls when the doorbell rings, and at a pace
// that depends on what this driver waits for and holds.
func newPoller(t *table) *engine.Poller {
	return &engine.Poller{Claims: t.claims, Pace: t.pace, Losses: slowPace, LookNow: t.rings, Look: t.lookAtSignals}
}

// lookAtSignals delivers new signals. When the file is no longer the opened one, it
// notifies all claims, once: their next call returns the error.
func (t *table) lookAtSignals(ctx context.Context) error {
	rung := t.rung.Swap(false)
	r, err := t.reader.enter(ctx, t.busyTimeout)
	if err != nil {
		return err
	}
	signals, err := r.receive(t.inbox)
	whole := t.files.check(r.conn) == nil
	t.reader.leave()
	t.noteSignals(signals, rung)
	for _, s := range signals {
		t.deliver(s)
	}
	if !whole && !t.replaced {
		t.deliver(driver.Signal{Kind: driver.SignalLook})
	}
	t.replaced = !whole
	return err
}

// pace is the pause between polls for a place in a queue.
func (t *table) pace(waited time.Duration, _ int) time.Duration {
	switch {
	case t.hears.Load():
		return slowPace
	case waited < eagerFor:
		return min(eagerPace, t.Poll)
	case waited < halfPaceAfter:
		return t.Poll
	default:
		return 2 * t.Poll
	}
}

// noteRing is called for each datagram at the doorbell.
func (t *table) noteRing() {
	t.rung.Store(true)
	select {
	case t.rings <- struct{}{}:
	default: // the poller has not yet seen an earlier ring
	}
}

// noteSignals records new signals, and whether the doorbell rang for them. If it did not,
// the sender cannot reach this driver's doorbell, or the poll came before the datagram.
func (t *table) noteSignals(signals []driver.Signal, rung bool) {
	own := 0 // signals for this inbox; the others are changes for watches
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

// maxRingers bounds how many holders of a name are checked for a reachable doorbell:
// mostly either all are reachable or none.
const maxRingers = 4

// noteRingers records the holders that will pass on a name that this driver waits for.
func (o *outcome) noteRingers(e *locktable.Entry, m locktable.Moves, inbox string) {
	for _, h := range e.Holders {
		if len(m.Joined)+len(m.Kept) > 0 && h.Inbox != inbox && len(o.ringers) < maxRingers {
			o.ringers = append(o.ringers, h.Inbox)
		}
	}
}
