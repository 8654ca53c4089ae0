package swap

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A knownValue is a value of a name, as this client last saw it.
type knownValue struct {
	Stored
	fresh bool // this step loaded the value alone, or its swap returned it; if false, the value may be outdated
}

// A result is the result of one try of a step.
type result struct {
	outcome outcome
	refused error // with outcomeDone: the store's error for this step alone, see Swapped.Err
	value   knownValue
	load    bool          // the next try has to load the value
	took    time.Duration // the duration of the try
}

// An outcome says how a try ended.
type outcome int

const (
	outcomeDone          outcome = iota // the swap took effect or was refused, or a current value needs no change
	outcomeOutdated                     // the value needs no change, but may be outdated
	outcomeYielded                      // a waiting claim pauses in favor of other clients, see stepBack
	outcomeConflict                     // the name has changed
	outcomeOutsideWindow                // the store's clock was not within the window
)

// retriesWithoutPause is the number of times that a step whose swap failed is repeated
// without a pause. Usually these are enough, even if several processes change the name.
// The pause keeps such processes from making each other fail for ever.
const retriesWithoutPause = 4

// step runs one step: it computes the step from the last known value of its name, swaps
// the result in, and repeats that with the value in the answer until it succeeds. It
// locks the name within this process, and unlocks it while a claim pauses. It waits for
// that lock until lockCtx ends. refused is the error of this step alone: the store's, or
// errNameBusy.
func (t *Table) step(ctx, lockCtx context.Context, s locktable.Step, f func(e *locktable.Entry, now locktable.Instant)) (refused, err error) {
	pausing, locked := stepBack{}, false
	defer func() {
		if locked {
			t.names.unlock(s.Name)
		}
		if err != nil {
			t.cache.drop(s.Name) // the step may have taken effect in spite of the error
			err = pausing.explain(err)
		}
	}()
	var r result
	for failures := 0; err == nil; {
		if !locked {
			if err = t.names.lock(lockCtx, s.Name, !s.Place); err != nil { // steps other than claims go first
				if ctx.Err() == nil {
					return errNameBusy, nil
				}
				break
			}
			locked = true
			if !r.load { // the first try
				stored, known := t.cache.get(s.Name)
				r = result{value: knownValue{Stored: stored}, load: !known}
			}
		}
		if r.load {
			began := time.Now()
			loaded, loadErr := t.store.Load(ctx, []string{s.Name})
			if err = loadErr; err != nil {
				break
			}
			t.cache.put(s.Name, loaded[0])
			r.value, pausing.roundTrip = knownValue{loaded[0], true}, time.Since(began)
		}
		if r, err = t.tryStep(ctx, s, r.value, &pausing, f); err != nil || r.outcome == outcomeDone {
			break
		}
		switch r.outcome {
		case outcomeDone, outcomeOutdated: // the next try loads the value
		case outcomeYielded:
			t.names.unlock(s.Name)
			locked, failures = false, 0
			err = pausing.pause(ctx)
		case outcomeConflict, outcomeOutsideWindow:
			if failures++; failures > retriesWithoutPause { // after a pause, the known value is probably outdated
				r.load, err = true, r.pause(ctx, failures-retriesWithoutPause)
			}
		}
	}
	return r.refused, err
}

// pause waits after a step has failed several times. The pause grows if the store's clock
// was not within the window, because the server may be busy.
func (r *result) pause(ctx context.Context, failures int) error {
	d := r.took / 2
	if r.outcome == outcomeOutsideWindow {
		d = backoff.Doubled(time.Millisecond, failures, 32*time.Millisecond)
	}
	return backoff.Wait(ctx, backoff.Jitter(d))
}

// tryStep computes a step from a known value, and swaps in the result if it changed the
// entry.
func (t *Table) tryStep(
	ctx context.Context, s locktable.Step, seen knownValue, pausing *stepBack, f func(e *locktable.Entry, now locktable.Instant),
) (r result, err error) {
	began := time.Now()
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return r, err
	}
	defer leave()
	c, err := t.newComputation(ctx, s.Name, seen.Stored, s.HasEnd, 0)
	if err != nil {
		return r, err
	}
	ahead := aheadOfLeaver(s, c.entry, c.window.From)
	if ahead >= 0 && !seen.fresh {
		return result{outcome: outcomeOutdated, load: true}, nil // probably the claim has been granted since
	}
	c.run(s, t.delayed, f)
	place := waitingPlace(s, c.entry)
	switch {
	case !c.entry.Changed && seen.fresh:
		return r, nil
	case !c.entry.Changed: // the answer must come from the current value
		return result{outcome: outcomeOutdated, load: true}, nil
	case place != nil && pausing.yieldsToHolder(place, c.entry, c.window.From):
		return result{outcome: outcomeYielded, load: true}, nil
	}
	swapped, err := t.swap(ctx, t.swapOf(c))
	if err != nil || swapped.Done || swapped.Err != nil {
		return result{refused: swapped.Err}, err
	}
	pausing.recordFailure(seen, swapped)
	r = result{outcome: outcomeConflict, value: seen, load: !swapped.HasStored && !swapped.OutsideWindow, took: time.Since(began)}
	if swapped.HasStored {
		r.value = knownValue{swapped.Stored, true}
	}
	switch {
	case swapped.OutsideWindow:
		r.outcome = outcomeOutsideWindow
	case (place != nil || ahead > 0) && seen.fresh:
		pausing.failedSwaps, pausing.roundTrip, pausing.ahead = pausing.failedSwaps+1, r.took, ahead
		r.outcome, r.load = outcomeYielded, true
	}
	return r, nil
}

// enterSwap waits for a free slot for a swap, see LimitSwaps.
func (t *Table) enterSwap(ctx context.Context) (leave func(), err error) {
	if t.swapSlots == nil {
		return func() {}, nil
	}
	select {
	case t.swapSlots <- struct{}{}:
	default: // Done is called only here, because it may start a timer
		select {
		case t.swapSlots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() { <-t.swapSlots }, nil
}

// A computation runs steps on the known value of one name.
type computation struct {
	name   string
	seen   Stored
	window Window
	hasEnd bool
	claims int              // the number of holders and waiters before the steps
	entry  *locktable.Entry // has the changes and the signals of all the steps
}

func countClaims(e *locktable.Entry) int { return len(e.Holders) + len(e.Queue) }

// newComputation makes a computation at the beginning of the store's present window. It
// makes that window wider by extraWidth. With hasEnd, the window ends before ctx ends.
func (t *Table) newComputation(ctx context.Context, name string, seen Stored, hasEnd bool, extraWidth time.Duration) (*computation, error) {
	w, err := t.store.Time(ctx)
	if err != nil {
		return nil, err
	}
	w.To = w.To.Add(extraWidth)
	uncertainty := w.From.Until(w.To) // even if hasEnd cuts w
	if hasEnd {
		// This is a lower bound of the store's clock at the end of ctx, see driver.End.
		w.To = min(w.To, engine.ServerTime{Client: time.Now(), Server: w.From}.LowerBound(driver.End(ctx)))
		if ctx.Err() != nil || w.To < w.From {
			return nil, cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
	}
	e, err := decode(name, seen.Value)
	if err != nil {
		t.cache.drop(name)
		return nil, err
	}
	e.Uncertainty, e.WallClock = uncertainty, w.WallClock
	return &computation{name: name, seen: seen, window: w, claims: countClaims(e), entry: e}, nil
}

// run runs one more step. delayed means that the store is a DelayedWriter.
func (c *computation) run(s locktable.Step, delayed bool, f func(e *locktable.Entry, now locktable.Instant)) {
	e := c.entry
	changed, signals := e.Changed, e.Signals
	f(e, c.window.From)
	e.Changed = e.Changed || changed || delayed && mustWrite(s, e)
	if len(signals) > 0 {
		e.Signals = append(signals, e.Signals...)
	}
	c.hasEnd = c.hasEnd || s.HasEnd
}

// mustWrite reports whether a step must write, so that an earlier request that was given
// up can no longer take effect, see DelayedWriter. A release makes an earlier claim fail.
// A claim that is already granted or queued makes an earlier release fail.
func mustWrite(s locktable.Step, e *locktable.Entry) bool {
	if s.Token.IsZero() || !s.Place {
		return !s.Token.IsZero()
	}
	return slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == s.Token }) ||
		slices.ContainsFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == s.Token })
}

func (t *Table) swapOf(c *computation) Swap {
	s := Swap{
		Name: c.name, HasEnd: c.hasEnd, Version: c.seen.Version, Value: c.entry.Append(nil), Previous: c.seen.Value, StoreState: c.seen.StoreState,
		Window: c.window, Entry: c.entry,
	}
	if c.claims > 0 && countClaims(c.entry) > c.claims { // the steps added a holder or a waiter to the existing ones
		s.ReserveBytes = len(s.Value)/8 + 2*driver.MaxValue
	}
	for _, to := range c.entry.Signals {
		if to.Inbox != t.inbox {
			s.Signals = append(s.Signals, to)
		}
	}
	return s
}

// swap makes one swap. If the store is a Gatherer, the request may also have swaps of
// other goroutines.
func (t *Table) swap(ctx context.Context, s Swap) (r Swapped, err error) {
	if t.queue != nil {
		r, err = t.queue.swap(ctx, s)
	} else if results, swapErr := t.store.Swap(ctx, []Swap{s}); swapErr == nil {
		r = results[0]
	} else {
		err = swapErr
	}
	if err == nil {
		t.applyResult(s, r)
	}
	return r, err
}

// The waiters of a queue longer than maxCachedQueue change the name so often that a swap
// from a cached value would fail. So the table caches such an entry only for longQueueAge
// after a swap: for a client that releases the name and asks for it again at once.
const (
	maxCachedQueue = 8
	longQueueAge   = 5 * time.Millisecond
)

// applyResult caches the result of a swap, and then delivers this client's own signals.
// It caches first, because a listener may begin the next step on the name.
func (t *Table) applyResult(s Swap, r Swapped) {
	switch {
	case r.Err != nil:
		t.cache.drop(s.Name)
	case r.Done && len(s.Entry.Queue) > maxCachedQueue:
		t.cache.putUntil(s.Name, Stored{s.Value, r.Version, r.StoreState}, time.Now().Add(longQueueAge))
	case r.Done:
		t.cache.put(s.Name, Stored{s.Value, r.Version, r.StoreState})
	case r.HasStored:
		t.cache.put(s.Name, r.Stored)
	case !r.OutsideWindow:
		t.cache.drop(s.Name)
	}
	if !r.Done {
		return
	}
	for _, to := range s.Entry.Signals {
		if to.Inbox == t.inbox {
			t.deliver(to.Signal)
		}
	}
}

// decode reads the stored entry of a name: an empty value is a new entry.
func decode(name string, stored []byte) (*locktable.Entry, error) {
	if len(stored) == 0 {
		return &locktable.Entry{}, nil
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		err = fmt.Errorf("the entry of %.80q: %w", name, err)
	}
	return e, err
}
