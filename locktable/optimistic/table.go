package optimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/turns"
	"github.com/pawl-go/pawl/locktable"
)

// Table is a [locktable.Table] over a [Store]. It computes a step from the last known
// value of its name, and swaps the result in. If the name has changed meanwhile, the swap
// fails, and the table computes the step again from the current value.
type Table struct {
	store     Store
	inbox     string
	deliver   func(driver.Signal)
	lingers   bool
	cache     cache
	turns     turns.Turns   // one step of this process per name at a time: of several swaps at once, one succeeds
	lanes     *lanes        // nil if the store does not gather
	swapSlots chan struct{} // has room for the swaps that may be under way at once; nil: any number
}

// New makes a Table. The store sends the signals of a step to other clients. deliver gets
// the signals for inbox, which is this client's own: it is the [locktable.Driver.Deliver]
// of the driver over this table.
func New(s Store, inbox string, deliver func(driver.Signal)) *Table {
	_, lingers := s.(Lingerer)
	t := &Table{store: s, inbox: inbox, deliver: deliver, lingers: lingers}
	if g, ok := s.(Gatherer); ok {
		t.lanes = &lanes{store: s, fit: g.Fit}
	}
	return t
}

// AtOnce limits the table to n swaps at a time, for a store that has n connections. Steps
// wait for their turn in order, and before they are computed: otherwise a window would
// close while its swap waits for a connection.
func (t *Table) AtOnce(n int) *Table {
	t.swapSlots = make(chan struct{}, n)
	return t
}

// enterSwap waits until there is room for a swap.
func (t *Table) enterSwap(ctx context.Context) (leave func(), err error) {
	if t.swapSlots == nil {
		return func() {}, nil
	}
	leave = func() { <-t.swapSlots }
	select {
	case t.swapSlots <- struct{}{}:
		return leave, nil
	default: // calling Done may start a timer
	}
	select {
	case t.swapSlots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// maxCachedQueue is the longest queue whose entry the table caches after a swap. The
// waiters of a longer queue change the name so often that a swap from a cached value
// would fail.
const maxCachedQueue = 8

// Update implements locktable.Table.
func (t *Table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	if len(steps) == 1 {
		return t.takeOne(ctx, steps[0], func(e *locktable.Entry, now locktable.Instant) { f(0, e, now) })
	}
	failed := map[int]error{}
	for part := range slices.Chunk(groupsOf(steps), atATime) {
		if err := t.many(ctx, steps, part, f, failed); err != nil {
			return err
		}
	}
	switch err := failed[0]; {
	case len(failed) == 0:
		return nil
	case len(failed) == len(steps) && !errors.Is(err, ErrLocked): // the store itself fails
		return err
	}
	return &locktable.StepsError{Failed: failed}
}

// A knownValue is a value of a name, as this client last saw it.
type knownValue struct {
	Stored
	fresh bool // this step loaded it alone, or its swap returned it; otherwise the value may be outdated
}

// retriesWithoutPause is the number of times that a step whose swap failed is repeated
// without a pause. That is enough for several processes on one name to make progress; the
// pause only keeps them from failing like that for ever.
const retriesWithoutPause = 4

// takeOne takes one step, and repeats it until it succeeds.
func (t *Table) takeOne(ctx context.Context, s locktable.Step, f func(e *locktable.Entry, now locktable.Instant)) error {
	for back := (stepBack{}); ; {
		waits, err := t.inTurn(ctx, s, &back, f)
		if err == nil && waits {
			err = back.pause(ctx)
		} else if err == nil {
			return nil
		}
		if err != nil {
			t.cache.drop(s.Name) // the step may have been taken all the same
			return back.explain(err)
		}
	}
}

// inTurn calls untilTaken while no other step of this process runs on the name. Steps
// other than claims go first.
func (t *Table) inTurn(ctx context.Context, s locktable.Step, back *stepBack, f func(e *locktable.Entry, now locktable.Instant)) (waits bool, err error) {
	enter := t.turns.EnterAhead
	if s.Place {
		enter = t.turns.Enter
	}
	if err := enter(ctx, s.Name); err != nil {
		return false, err
	}
	defer t.turns.Leave(s.Name)
	return t.untilTaken(ctx, s, back, f)
}

// untilTaken repeats a step until it succeeds. If a claim has to step back, it returns,
// and its caller pauses.
func (t *Table) untilTaken(ctx context.Context, s locktable.Step, back *stepBack, f func(e *locktable.Entry, now locktable.Instant)) (waits bool, err error) {
	read := t.lookUp
	if back.times > 0 {
		read = t.load // after a pause the cached value is outdated
	}
	began := time.Now()
	seen, err := read(ctx, s.Name)
	if seen.fresh {
		back.trip = time.Since(began)
	}
	for fails := 0; err == nil; {
		began = time.Now()
		var r Swapped
		var did outcome
		r, did, err = t.attempt(ctx, s, seen, back, f)
		switch {
		case err != nil || r.Done || did == nothing && seen.fresh:
			return false, err
		case did == nothing: // the answer has to be about the current value
			seen, err = t.load(ctx, s.Name)
			continue
		case did == refrained:
			return true, nil
		}
		back.noteFailure(seen, r)
		if did == waited && seen.fresh && !r.Late {
			back.lost, back.trip = back.lost+1, time.Since(began)
			return true, nil
		}
		if fails++; fails > retriesWithoutPause { // after a pause the known value is outdated
			d := time.Since(began) / 2
			if r.Late {
				d = backoff.Doubled(time.Millisecond, fails-retriesWithoutPause, 32*time.Millisecond)
			}
			if err = backoff.Wait(ctx, backoff.Around(d)); err == nil {
				seen, err = t.load(ctx, s.Name)
			}
		} else if !r.Late || r.Known {
			seen, err = t.valueAfter(ctx, s.Name, r)
		}
	}
	return false, err
}

// attempt computes a step, and swaps in the result if it changed the entry.
func (t *Table) attempt(ctx context.Context, s locktable.Step, seen knownValue, back *stepBack, f func(e *locktable.Entry, now locktable.Instant)) (r Swapped, did outcome, err error) {
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return r, nothing, err
	}
	defer leave()
	w, blur, err := t.window(ctx, s.OnTime, 0)
	if err != nil {
		return r, nothing, err
	}
	c, err := t.begin(s.Name, seen, w, blur)
	if err != nil {
		return r, nothing, err
	}
	c.run(s, t.lingers, f)
	if !c.entry.Changed {
		return r, nothing, nil
	}
	if did = outcomeOf(s, c.entry); did == waited && back.refrains(s, c.entry, w.From) {
		return r, refrained, nil
	}
	r, err = t.swap(ctx, t.swapOf(c))
	return r, did, err
}

// lookUp is the last known value of a name. If there is none, lookUp loads it.
func (t *Table) lookUp(ctx context.Context, name string) (knownValue, error) {
	if s, ok := t.cache.get(name); ok {
		return knownValue{Stored: s}, nil
	}
	return t.load(ctx, name)
}

func (t *Table) load(ctx context.Context, name string) (knownValue, error) {
	all, err := t.store.Load(ctx, []string{name})
	if err != nil {
		return knownValue{}, err
	}
	t.cache.put(name, all[0])
	return knownValue{all[0], true}, nil
}

// valueAfter is the value to go on with after a swap that failed.
func (t *Table) valueAfter(ctx context.Context, name string, r Swapped) (knownValue, error) {
	if r.Known {
		return knownValue{r.Now, true}, nil
	}
	return t.load(ctx, name)
}

// A computation is what steps on one name make of its known value.
type computation struct {
	name   string
	seen   knownValue
	window Window
	onTime bool
	claims int              // the number of holders and waiters before the steps
	entry  *locktable.Entry // its Changed and Signals are those of all the steps
}

func countClaims(e *locktable.Entry) int { return len(e.Holders) + len(e.Queue) }

// window returns a window of the store's clock that begins now, wider by `wider`. If the
// steps have an end, the window ends before it. blur is the width without that.
func (t *Table) window(ctx context.Context, onTime bool, wider time.Duration) (w Window, blur time.Duration, err error) {
	if w, err = t.store.Time(ctx); err != nil {
		return w, 0, err
	}
	w.To = w.To.Add(wider)
	blur = w.From.Until(w.To)
	if onTime {
		// A lower bound of the store's clock at the end, see driver.End.
		w.To = min(w.To, engine.ServerTime{At: time.Now(), Is: w.From}.By(driver.End(ctx)))
		if ctx.Err() != nil || w.To < w.From {
			return w, 0, cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
	}
	return w, blur, nil
}

// begin begins a computation at the beginning of a window.
func (t *Table) begin(name string, seen knownValue, w Window, blur time.Duration) (*computation, error) {
	e, err := decode(seen.Value)
	if err != nil {
		t.cache.drop(name)
		return nil, fmt.Errorf("the entry of %.80q: %w", name, err)
	}
	e.Blur = blur // even if an end made w shorter: not every store knows when in w a swap takes effect
	e.Day = w.Day
	return &computation{name: name, seen: seen, window: w, claims: countClaims(e), entry: e}, nil
}

// run takes one more step. lingers is a property of the store, see Lingerer.
func (c *computation) run(s locktable.Step, lingers bool, f func(e *locktable.Entry, now locktable.Instant)) {
	e := c.entry
	changed, signals := e.Changed, e.Signals
	f(e, c.window.From)
	e.Changed = e.Changed || changed || lingers && overtakes(s, e)
	if len(signals) > 0 {
		e.Signals = append(signals, e.Signals...)
	}
	c.onTime = c.onTime || s.OnTime
}

// overtakes reports whether a step has to invalidate, or wait for, an earlier request
// that was given up, see Lingerer. A release has to do so because of an earlier claim. A
// claim that stays granted or queued has to do so because of an earlier release.
func overtakes(s locktable.Step, e *locktable.Entry) bool {
	if s.Token.IsZero() || !s.Place {
		return !s.Token.IsZero()
	}
	return slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == s.Token }) ||
		slices.ContainsFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == s.Token })
}

func (t *Table) swapOf(c *computation) Swap {
	s := Swap{
		Name: c.name, OnTime: c.onTime, Version: c.seen.Version, Value: c.entry.Append(nil), Was: c.seen.Value, Note: c.seen.Note,
		Window: c.window, Entry: c.entry,
	}
	if c.claims > 0 && countClaims(c.entry) > c.claims { // one more holder or waiter, beside others
		s.Spare = len(s.Value)/8 + 2*driver.MaxValue
	}
	for _, to := range c.entry.Signals {
		if to.Inbox != t.inbox {
			s.Signals = append(s.Signals, to)
		}
	}
	return s
}

func (t *Table) swap(ctx context.Context, s Swap) (Swapped, error) {
	is, err := t.swapOne(ctx, s)
	if err != nil {
		return Swapped{}, err
	}
	t.note(s, is)
	if is.Err != nil {
		return is, ownError{is.Err}
	}
	return is, nil
}

// An ownError concerns one swap alone: other steps may have been taken.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// swapOne makes one swap, together with those of other goroutines if the store can do
// that.
func (t *Table) swapOne(ctx context.Context, s Swap) (Swapped, error) {
	if t.lanes != nil {
		return t.lanes.swap(ctx, s)
	}
	all, err := t.store.Swap(ctx, []Swap{s})
	if err != nil {
		return Swapped{}, err
	}
	return all[0], nil
}

// note caches the result of a swap, and delivers this client's own signals. It caches
// first, because a listener may begin the next step on the name.
func (t *Table) note(s Swap, r Swapped) {
	switch {
	case r.Err != nil:
		t.cache.drop(s.Name)
	case r.Done && len(s.Entry.Queue) > maxCachedQueue:
		t.cache.drop(s.Name) // waiters keep their places in the queue, so a swap from this value would fail
	case r.Done:
		t.cache.put(s.Name, Stored{s.Value, r.Version, r.Note})
	case r.Known:
		t.cache.put(s.Name, r.Now)
	case !r.Late:
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

// Forget drops the known values of all names. A store calls it when it may have lost
// data, because versions could repeat.
func (t *Table) Forget() { t.cache.clear() }

// Read implements locktable.Table.
func (t *Table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	all, err := t.store.Load(ctx, []string{name})
	if err != nil {
		return nil, 0, err
	}
	w, err := t.store.Time(ctx)
	if err != nil {
		return nil, 0, err
	}
	e, err := decode(all[0].Value)
	if err != nil {
		return nil, 0, fmt.Errorf("the entry of %.80q: %w", name, err)
	}
	return e, w.From, nil
}

// Scan implements locktable.Table.
func (t *Table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		for n, err := range t.store.Scan(ctx, prefix) {
			row := locktable.Row{Name: n.Name, Now: n.Now}
			if err == nil {
				if row.Entry, err = decode(n.Stored.Value); err != nil {
					err = fmt.Errorf("the entry of %.80q: %w", n.Name, err)
				}
			}
			if !yield(row, err) || err != nil && n.Name == "" {
				return
			}
		}
	}
}

// Properties implements locktable.Table.
func (t *Table) Properties() driver.Properties {
	p := t.store.Properties()
	p.MaxOverrun = max(p.MaxOverrun, maxWindow)
	return p
}

// Close implements locktable.Table.
func (t *Table) Close() error { return t.store.Close() }

// decode reads a stored entry: an empty value is a new entry.
func decode(stored []byte) (*locktable.Entry, error) {
	if len(stored) == 0 {
		return &locktable.Entry{}, nil
	}
	return locktable.Decode(stored)
}
