package optimistic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/locktable"
)

// An outcome is what a step did to an entry.
type outcome int

const (
	nothing outcome = iota
	changed
	waited    // a claim got its place in the queue, or kept it, and nobody was granted anything
	refrained // waited, and it did not even try to swap that in: see stepBack
)

func outcomeOf(s locktable.Step, e *locktable.Entry) outcome {
	granted := func(s locktable.Signal) bool { return s.Kind == driver.SignalGranted }
	if placeOf(s, e) == nil || slices.ContainsFunc(e.Signals, granted) {
		return changed
	}
	return waited
}

// placeOf is the place of a step's claim in the queue, nil if it has none.
func placeOf(s locktable.Step, e *locktable.Entry) *locktable.Waiter {
	i := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return s.Place && w.Token == s.Token })
	if i < 0 {
		return nil
	}
	return &e.Queue[i]
}

// A stepBack is how a claim that waits makes room for the others on its name. Only one
// swap on a name can be done in a round trip, and each makes those in vain that were
// computed beside it. A renewal or a release cannot wait, so they try again at once; a
// place in the queue is good for a while longer, so whoever keeps it steps back when it
// has lost a race, and when a holder seems to be losing them.
type stepBack struct {
	times int           // it has paused
	lost  int           // races
	trip  time.Duration // how long the store takes to answer; 0 is not known
	vain
}

// mostQuiet is how often a claim steps back for a holder that has not renewed. Two round
// trips without another swap are what a renewal needs.
const mostQuiet = 3

// refrains reports whether a holder that lives would have renewed its lease by now: it
// does at a third of the TTL, and less than a half is left by the measure of the claim,
// which does not know the holder's. A holder that is dead costs it a few round trips.
func (b *stepBack) refrains(s locktable.Step, e *locktable.Entry, now locktable.Instant) bool {
	half := now + (placeOf(s, e).Expires-now)/2
	return b.times-b.lost < mostQuiet && slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool {
		return !h.Token.IsZero() && h.Expires < half
	})
}

// pause makes room for some round trips, for more of them each time that a race was lost,
// and for a part of the time that is left, so that there is enough to try again.
func (b *stepBack) pause(ctx context.Context) error {
	b.times++
	d := backoff.Around(backoff.Doubled(2*b.trip, max(b.lost-1, 0), 16*b.trip))
	return pause.For(ctx, min(d, time.Until(driver.End(ctx))/4))
}

// A vain is what a step that does not end has met. It is for the person who reads its
// error: a step is repeated for as long as its ctx lasts, for it may yet succeed.
type vain struct {
	version uint64 // of the value that a swap was to replace, and did not
	same    int    // how often in a row Load gave that version again after it
	late    int    // how often in a row the store's clock was outside of the window
}

// often is from when on what was met is worth a word. Contention alone does not do it:
// there somebody else gets on.
const often = 16

func (v *vain) note(seen sight, r Swapped) {
	switch {
	case r.Late:
		v.late++
		return
	case seen.fresh && seen.Version == v.version:
		v.same++
	default:
		v.version, v.same = seen.Version, 0
	}
	v.late = 0
}

// explain adds to the end of a ctx what it was used up with.
func (v *vain) explain(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case v.same >= often:
		return fmt.Errorf("%w (%d times in a row the swap of version %d was refused, and Load gave that version again: "+
			"does Load read a copy that lags, or Swap compare something else?)", err, v.same, v.version)
	case v.late >= often:
		return fmt.Errorf("%w (%d times in a row the store's clock was outside of the swap's window: "+
			"are Time and Swap on one clock, and does it say less than whole ticks, without a Tick?)", err, v.late)
	}
	return err
}
