package sqlitelock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

const (
	slowPace      = 100 * time.Millisecond // the pause between polls if no claim waits, or holders can send wake-ups
	eagerPace     = time.Millisecond       // the pause in the first eagerTime of a wait: many leases are short
	eagerTime     = 20 * time.Millisecond
	halfPaceAfter = time.Second // after this wait a claim polls half as often, so that long waits cost little
)

// newPoller makes the poller for signals. It polls when a wake-up arrives, and at a pace
// that depends on the driver's claims and leases.
func newPoller(t *table) *engine.Poller {
	return &engine.Poller{Claims: t.claims, Pace: t.pace, LossInterval: slowPace, PollNow: t.woken, Poll: t.pollSignals}
}

// pollSignals delivers new signals. If the file is no longer the opened one, it makes
// all claims ask again, once, so that they get the error.
func (t *table) pollSignals(ctx context.Context) error {
	c, err := t.reader.enter(ctx, t.busyTimeout)
	if err != nil {
		return err
	}
	signals, err := t.receiveSignals(c)
	intact := t.files.check(c) == nil
	t.reader.leave()
	for _, s := range signals {
		t.claims.Signaled(s)
		t.deliver(s)
	}
	if !intact && !t.replaced {
		t.deliver(driver.Signal{Kind: driver.SignalRetry})
	}
	t.replaced = !intact
	return err
}

// pace returns the pause between polls for a waiting claim.
func (t *table) pace(waited time.Duration, _ int) time.Duration {
	switch {
	case t.holdersCanWake.Load():
		return slowPace
	case waited < eagerTime:
		return min(eagerPace, t.Poll)
	case waited < halfPaceAfter:
		return t.Poll
	default:
		return 2 * t.Poll
	}
}

// recordWakeup makes the poller poll at once.
func (t *table) recordWakeup() {
	select {
	case t.woken <- struct{}{}:
	default: // the poller has not yet handled an earlier wake-up
	}
}

// maxCheckedHolders is the number of holders of a name whose sockets the driver checks.
// Usually the driver can reach all of them, or none.
const maxCheckedHolders = 4

// recordHolders records a name's holders if a claim of this driver waits for the name.
func (o *outcome) recordHolders(e *locktable.Entry, changes locktable.QueueChanges, inbox string) {
	for _, h := range e.Holders {
		if len(changes.Joined)+len(changes.Updated) > 0 && h.Inbox != inbox && len(o.holders) < maxCheckedHolders {
			o.holders = append(o.holders, h.Inbox)
		}
	}
}
