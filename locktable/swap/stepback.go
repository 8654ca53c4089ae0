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

// onlyWaits returns the place in the queue that a step has given to its claim, or kept
// for it. It is nil if there is none, or if the step has granted a claim.
func onlyWaits(s locktable.Step, e *locktable.Entry) *locktable.Waiter {
	granted := func(s locktable.Signal) bool { return s.Kind == driver.SignalGranted }
	i := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return s.Place && w.Token == s.Token })
	if i < 0 || slices.ContainsFunc(e.Signals, granted) {
		return nil
	}
	return &e.Queue[i]
}

// A stepBack makes a claim that waits leave room for the other clients on its name. Only
// one swap on a name can succeed per round trip; the swaps computed beside it fail. A
// renewal or a release cannot wait, so these try again at once. A place in the queue
// lasts a while longer, so a claim that keeps its place pauses when it has lost a race,
// and when a holder seems to be losing races.
type stepBack struct {
	times int           // how often the claim has paused
	lost  int           // how many races the claim has lost
	trip  time.Duration // how long the store takes to answer; 0 means unknown

	// The failures of the step, for the person who reads its error. A step is repeated as
	// long as its ctx lasts, because it may still succeed.
	version uint64 // the version of the value that a swap failed to replace
	same    int    // how often in a row Load gave that version again after the swap failed
	late    int    // how often in a row the store's clock was outside of the window
}

// maxPausesForHolder is the number of times that a claim pauses for a holder that has not
// renewed. A renewal needs two round trips without another swap.
const maxPausesForHolder = 3

// makesRoom reports whether a live holder should already have renewed its lease. A holder
// renews after a third of its TTL, so it is late when less than half is left. The claim
// takes its own QueueTTL for that TTL. A dead holder costs the claim a few round trips.
func (b *stepBack) makesRoom(own *locktable.Waiter, e *locktable.Entry, now locktable.Instant) bool {
	half := now + (own.Expires-now)/2
	return b.times-b.lost < maxPausesForHolder && slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool {
		return !h.Token.IsZero() && h.Expires < half
	})
}

// pause waits for some round trips, more of them after each lost race, but only for a
// part of the time that is left, so that enough is left for another try.
func (b *stepBack) pause(ctx context.Context) error {
	b.times++
	d := backoff.Around(backoff.Doubled(2*b.trip, max(b.lost-1, 0), 64*b.trip))
	return backoff.Wait(ctx, min(d, time.Until(driver.End(ctx))/4))
}

// failuresToMention is the least number of failures that an error mentions. Contention
// alone does not reach it, because then other clients succeed in between.
const failuresToMention = 16

func (b *stepBack) noteFailure(seen knownValue, r Swapped) {
	switch {
	case r.OutsideWindow:
		b.late++
		return
	case seen.fresh && seen.Version == b.version:
		b.same++
	default:
		b.version, b.same = seen.Version, 0
	}
	b.late = 0
}

// explain adds the failures to the error of a ctx that has ended.
func (b *stepBack) explain(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case b.same >= failuresToMention:
		return fmt.Errorf("%w (%d times in a row the swap of version %d was refused, and Load gave that version again: "+
			"does Load read a copy that lags, or Swap compare something else?)", err, b.same, b.version)
	case b.late >= failuresToMention:
		return fmt.Errorf("%w (%d times in a row the store's clock was outside of the swap's window: "+
			"are Time and Swap on one clock, and does it say less than whole ticks, without a Tick?)", err, b.late)
	}
	return err
}
