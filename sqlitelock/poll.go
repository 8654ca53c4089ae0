package sqlitelock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

const (
	slowPace      = 100 * time.Millisecond // pause between polls if no claim waits, or wake-ups arrive
	eagerPace     = time.Millisecond       // pause in the first eagerFor of a wait: many holders need only milliseconds
	eagerFor      = 20 * time.Millisecond
	halfPaceAfter = time.Second // after this wait a claim polls half as often, so that long waits cost little
)

// newPoller makes the poller for signals. It polls when a wake-up arrives, and at a pace
// that depends on what this driver waits for and holds.
func newPoller(t *table) *engine.Poller {
	return &engine.Poller{Claims: t.claims, Pace: t.pace, Losses: slowPace, LookNow: t.woken, Look: t.lookAtSignals}
}

// lookAtSignals delivers new signals. When the file is no longer the opened one, it
// notifies all claims, once: their next call returns the error.
func (t *table) lookAtSignals(ctx context.Context) error {
	woken := t.wokenSincePoll.Swap(false)
	r, err := t.reader.enter(ctx, t.busyTimeout)
	if err != nil {
		return err
	}
	signals, err := r.receive(t.inbox)
	whole := t.files.check(r.conn) == nil
	t.reader.leave()
	t.noteSignals(signals, woken)
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

// noteWakeup is called for each datagram.
func (t *table) noteWakeup() {
	t.wokenSincePoll.Store(true)
	select {
	case t.woken <- struct{}{}:
	default: // the poller has not yet seen an earlier wake-up
	}
}

// noteSignals records new signals, and whether a wake-up announced them. If it did not,
// the sender cannot reach this driver's socket, or the poll came before the datagram.
func (t *table) noteSignals(signals []driver.Signal, woken bool) {
	own := 0 // signals for this inbox; the others are changes for watches
	for _, s := range signals {
		if !locktable.IsChange(s) {
			own++
		}
		t.claims.Heard(s)
	}
	if own > 0 || woken && len(signals) == 0 {
		t.hears.Store(woken)
	}
}

// maxWakers bounds how many holders of a name are checked for a reachable socket:
// mostly either all are reachable or none.
const maxWakers = 4

// noteWakers records the holders that will pass on a name that this driver waits for.
func (o *outcome) noteWakers(e *locktable.Entry, m locktable.Moves, inbox string) {
	for _, h := range e.Holders {
		if len(m.Joined)+len(m.Kept) > 0 && h.Inbox != inbox && len(o.wakers) < maxWakers {
			o.wakers = append(o.wakers, h.Inbox)
		}
	}
}
