package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// waitingPlace returns the place in the queue of the step's claim. It is nil if there is
// none, or if the step has granted a claim.
func waitingPlace(s locktable.Step, e *locktable.Entry) *locktable.Waiter {
	granted := func(s locktable.Signal) bool { return s.Kind == driver.SignalGranted }
	i := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return s.Place && w.Token == s.Token })
	if i < 0 || slices.ContainsFunc(e.Signals, granted) {
		return nil
	}
	return &e.Queue[i]
}

// aheadOfLeaver returns the number of waiters ahead of a waiter that gives up its place,
// and -1 for all other steps. The entry is the one before the step. Places that have
// expired do not count.
func aheadOfLeaver(s locktable.Step, e *locktable.Entry, now locktable.Instant) (ahead int) {
	for _, w := range e.Queue {
		switch {
		case !s.Place && w.Token == s.Token:
			return ahead
		case w.Expires > now:
			ahead++
		}
	}
	return -1
}

// A stepBack makes a waiting claim pause in favor of other clients on its name. Only one
// swap on a name can succeed per round trip; concurrent swaps fail. Renewals and releases
// are urgent, so they retry at once. Renewing a place is not urgent. So a claim that has
// a place pauses after its swap has failed, and when the swaps of a holder seem to fail.
// A waiter that gives up its place pauses after a failed swap, unless it is the head: the
// name might be granted to it meanwhile. If many readers wait, the name may be granted to
// another leaver, too, which then holds it until its pause is over.
type stepBack struct {
	pauses      int           // the number of the claim's pauses
	failedSwaps int           // the number of the claim's failed swaps
	ahead       int           // the result of aheadOfLeaver
	roundTrip   time.Duration // the store's round-trip time; 0 means unknown

	// The failed swaps of the step, for its error when ctx ends. Until then the step is
	// repeated.
	version       uint64 // the version of the value that a swap failed to replace
	staleLoads    int    // the number of times in a row that Load returned that version after the swap failed
	missedWindows int    // the number of times in a row that the store's clock was outside of the window
}

// maxPausesForHolder is the number of times that a claim pauses for a holder that has not
// renewed. A renewal needs two round trips without another swap.
const maxPausesForHolder = 3

// yieldsToHolder reports whether the claim should pause because a holder is late with its
// renewal: its lease has less than half of the time left that the claim's own place has.
// A live holder renews after a third of its TTL. If the holder is dead, the claim loses a
// few round trips.
func (b *stepBack) yieldsToHolder(own *locktable.Waiter, e *locktable.Entry, now locktable.Instant) bool {
	half := now + (own.Expires-now)/2
	return b.pauses-b.failedSwaps < maxPausesForHolder && slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool {
		return !h.Token.IsZero() && h.Expires < half
	})
}

// maxAhead is the largest number of waiters ahead that makes a leaver's pause longer.
// Longer pauses would leave too few tries, for example while its client closes.
const maxAhead = 16

// pause waits for some round trips, and for more after each failed swap. It uses only a
// part of the time until ctx ends, so that another try is possible. A waiter that gives
// up its place waits for less time than the waiters ahead of it need: a round trip for
// each. So a crowd that gives up at once leaves roughly in the order of the queue.
func (b *stepBack) pause(ctx context.Context) error {
	b.pauses++
	d := backoff.Doubled(2*b.roundTrip, max(b.failedSwaps-1, 0), 64*b.roundTrip)
	if b.ahead > 0 {
		d = time.Duration(min(b.ahead, maxAhead)) * b.roundTrip / 2
	}
	d = backoff.Jitter(d)
	return backoff.Wait(ctx, min(d, time.Until(driver.End(ctx))/4))
}

// failuresToMention is the least number of failures that an error mentions. Mere
// contention does not reach it, because the version changes when another client succeeds.
const failuresToMention = 16

func (b *stepBack) recordFailure(seen knownValue, r Swapped) {
	switch {
	case r.OutsideWindow:
		b.missedWindows++
		return
	case seen.fresh && seen.Version == b.version:
		b.staleLoads++
	default:
		b.version, b.staleLoads = seen.Version, 0
	}
	b.missedWindows = 0
}

// explain adds the failures to err, the error of a ctx that has ended.
func (b *stepBack) explain(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case b.staleLoads >= failuresToMention:
		return fmt.Errorf("%w (%d times in a row the swap of version %d was refused, and Load returned that version again: "+
			"maybe Load reads an outdated replica, or Swap compares something else)", err, b.staleLoads, b.version)
	case b.missedWindows >= failuresToMention:
		return fmt.Errorf("%w (%d times in a row the store's clock was outside of the swap's window: "+
			"maybe Time and Swap use different clocks, or the clock shows whole ticks and Tick is not set)", err, b.missedWindows)
	}
	return err
}
