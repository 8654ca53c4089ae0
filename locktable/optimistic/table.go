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
	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/internal/turns"
	"github.com/pawl-go/pawl/locktable"
)

// Table is a [locktable.Table] over a [Store]. A step is computed from what was last seen
// of its name, and swapped in. If the name has changed meanwhile, that was in vain, and
// the step is computed again from what is there now.
type Table struct {
	store   Store
	inbox   string
	deliver func(driver.Signal)
	lingers bool
	cache   cache
	turns   turns.Turns   // with others of this process beside it all but one swap would be in vain
	lanes   *lanes        // nil if the store does not gather
	room    chan struct{} // has room for the swaps that may be under way at once; nil: any number

	transactor Transactor // the store, if it is one; else nil
}

// New makes a Table. The store sends the signals of a step to others; those for inbox,
// which is this client's own, go to deliver: the [locktable.Driver.Deliver] of the driver
// over this table.
func New(s Store, inbox string, deliver func(driver.Signal)) *Table {
	_, lingers := s.(Lingerer)
	t := &Table{store: s, inbox: inbox, deliver: deliver, lingers: lingers}
	t.transactor, _ = s.(Transactor)
	if g, ok := s.(Gatherer); ok {
		t.lanes = &lanes{store: s, fit: g.Fit}
	}
	return t
}

// AtOnce has the table make n swaps at a time at the most, for a store that has so many
// connections. Those that have to wait do so in their order, and before they are
// computed: a window would close while its swap waits for a connection.
func (t *Table) AtOnce(n int) *Table {
	t.room = make(chan struct{}, n)
	return t
}

// enter waits until there is room for a swap.
func (t *Table) enter(ctx context.Context) (leave func(), err error) {
	if t.room == nil {
		return func() {}, nil
	}
	leave = func() { <-t.room }
	select {
	case t.room <- struct{}{}:
		return leave, nil
	default: // Done may make a timer
	}
	select {
	case t.room <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// longest is how many waiters an entry has at the most, if the store is a Transactor. If
// it is not, a name with more of them changes all the time.
const longest = 8

// errTransact means that a step is for a transaction.
var errTransact = errors.New("the step needs a transaction")

// transactOne takes a step in a transaction.
func (t *Table) transactOne(ctx context.Context, s locktable.Step, f func(e *locktable.Entry, now locktable.Instant)) error {
	long := false
	err := t.transactor.Transact(ctx, []locktable.Step{s}, func(_ int, e *locktable.Entry, now locktable.Instant) bool {
		long = e.Rest.Len > 0
		f(e, now)
		return true
	})
	if !long {
		t.cache.drop(s.Name) // else the next step needs to know no more
	}
	return err
}

// Update implements locktable.Table.
func (t *Table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	if len(steps) == 1 {
		return t.one(ctx, steps[0], func(e *locktable.Entry, now locktable.Instant) { f(0, e, now) })
	}
	all := make([]int, len(steps))
	for i := range all {
		all[i] = i
	}
	failed := map[int]error{}
	for part := range slices.Chunk(all, atATime) {
		if err := t.many(ctx, steps, part, f, failed); err != nil {
			return err
		}
	}
	switch err := failed[0]; {
	case len(failed) == 0:
		return nil
	case len(failed) == len(steps) && !errors.Is(err, ErrLocked): // it is the store that fails
		return err
	}
	return &locktable.StepsError{Failed: failed}
}

// A sight is what was seen of a name.
type sight struct {
	Stored
	fresh bool // read in this step, by itself; else it may have changed long ago
}

// atOnce is how often a step that was in vain is taken again without a pause. With that
// several processes on one name get on; a pause only keeps them from doing the same for
// ever.
const atOnce = 4

// one takes one step, until it was not in vain.
func (t *Table) one(ctx context.Context, s locktable.Step, f func(e *locktable.Entry, now locktable.Instant)) error {
	for back := (stepBack{}); ; {
		waits, err := t.inTurn(ctx, s, &back, f)
		if err == nil && waits {
			err = back.pause(ctx)
		} else if err == nil {
			return nil
		}
		if err != nil {
			t.cache.drop(s.Name) // it may have been taken all the same
			return back.explain(err)
		}
	}
}

// inTurn is untilTaken, with no other step of this process on the name beside it. What is
// no claim goes first.
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

// untilTaken takes a step until it was not in vain. A claim that is to step back leaves
// that to its caller.
func (t *Table) untilTaken(ctx context.Context, s locktable.Step, back *stepBack, f func(e *locktable.Entry, now locktable.Instant)) (waits bool, err error) {
	look := t.look
	if back.times > 0 {
		look = t.load // what is known is old after a pause
	}
	began := time.Now()
	seen, err := look(ctx, s.Name)
	if seen.fresh {
		back.trip = time.Since(began)
	}
	for vain := 0; err == nil; {
		began = time.Now()
		var r Swapped
		var did outcome
		r, did, err = t.attempt(ctx, s, seen, back, f)
		switch {
		case errors.Is(err, errTransact):
			return false, t.transactOne(ctx, s, f)
		case err != nil || r.Done || did == nothing && seen.fresh:
			return false, err
		case did == nothing: // whoever is refused is to hear how it is now
			seen, err = t.load(ctx, s.Name)
			continue
		case did == refrained:
			return true, nil
		case t.transactor != nil && !r.Late:
			return false, t.transactOne(ctx, s, f)
		}
		back.note(seen, r)
		if did == waited && seen.fresh && !r.Late {
			back.lost, back.trip = back.lost+1, time.Since(began)
			return true, nil
		}
		if vain++; vain > atOnce { // what is known now is old after a pause
			d := time.Since(began) / 2
			if r.Late {
				d = backoff.Doubled(time.Millisecond, vain-atOnce, 32*time.Millisecond)
			}
			if err = pause.For(ctx, backoff.Around(d)); err == nil {
				seen, err = t.load(ctx, s.Name)
			}
		} else if !r.Late || r.Known {
			seen, err = t.after(ctx, s.Name, r)
		}
	}
	return false, err
}

// attempt computes a step, and swaps in what it changed.
func (t *Table) attempt(ctx context.Context, s locktable.Step, seen sight, back *stepBack, f func(e *locktable.Entry, now locktable.Instant)) (r Swapped, did outcome, err error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return r, nothing, err
	}
	defer leave()
	c, err := t.compute(ctx, s, seen, 0, f)
	if err != nil || !c.entry.Changed {
		return r, nothing, err
	}
	if did = outcomeOf(s, c.entry); did == waited && t.transactor == nil && back.refrains(s, c.entry, c.window.From) {
		return r, refrained, nil
	}
	r, err = t.swap(ctx, t.swapOf(s, seen, c))
	return r, did, err
}

// look is what was seen last of a name. If that is nothing, it is loaded.
func (t *Table) look(ctx context.Context, name string) (sight, error) {
	if s, ok := t.cache.get(name); ok {
		return sight{Stored: s}, nil
	}
	return t.load(ctx, name)
}

func (t *Table) load(ctx context.Context, name string) (sight, error) {
	all, err := t.store.Load(ctx, []string{name})
	if err != nil {
		return sight{}, err
	}
	t.cache.put(name, all[0])
	return sight{all[0], true}, nil
}

// after is what there is to see after a swap that was in vain.
func (t *Table) after(ctx context.Context, name string, r Swapped) (sight, error) {
	if r.Known {
		return sight{r.Now, true}, nil
	}
	return t.load(ctx, name)
}

// computed is what a step made of what was seen.
type computed struct {
	entry  *locktable.Entry
	window Window
	joins  bool // there is one holder or waiter more, and there were some
}

func people(e *locktable.Entry) int { return len(e.Holders) + len(e.Queue) }

// compute runs f on what was seen, at the beginning of a window of the store's clock,
// which is wider by what is given.
func (t *Table) compute(ctx context.Context, s locktable.Step, seen sight, wider time.Duration, f func(e *locktable.Entry, now locktable.Instant)) (computed, error) {
	w, err := t.store.Time(ctx)
	if err != nil {
		return computed{}, err
	}
	w.To = w.To.Add(wider)
	blur := w.From.Until(w.To)
	if s.OnTime {
		// A lower bound of the store's clock at the end, see driver.End.
		w.To = min(w.To, engine.ServerTime{At: time.Now(), Is: w.From}.By(driver.End(ctx)))
		if ctx.Err() != nil || w.To < w.From {
			return computed{}, cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
	}
	e, err := decode(seen.Value)
	if err != nil {
		t.cache.drop(s.Name)
		return computed{}, fmt.Errorf("the entry of %.80q: %w", s.Name, err)
	}
	if t.transactor != nil && e.Rest.Len > 0 {
		return computed{}, errTransact
	}
	before := people(e)
	e.Blur = blur // also if that takes effect sooner: not every clock says when in its window
	e.Day = w.Day
	f(e, w.From)
	void := !e.Changed && overtakes(s, e)
	if t.transactor != nil && (void || len(e.Queue) > longest) {
		return computed{}, errTransact
	}
	e.Changed = e.Changed || void && t.lingers
	return computed{e, w, before > 0 && people(e) > before}, nil
}

// overtakes reports whether a step has to make void what was given up before it, see
// Lingerer, or to wait for it: a release a claim, and a claim that stays granted or
// queued a release.
func overtakes(s locktable.Step, e *locktable.Entry) bool {
	if s.Token.IsZero() || !s.Place {
		return !s.Token.IsZero()
	}
	return slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == s.Token }) ||
		slices.ContainsFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == s.Token })
}

func (t *Table) swapOf(step locktable.Step, seen sight, c computed) Swap {
	s := Swap{
		Name: step.Name, OnTime: step.OnTime, Version: seen.Version, Value: c.entry.Append(nil), Was: seen.Value, Note: seen.Note,
		Window: c.window, Entry: c.entry,
	}
	if c.joins {
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

// An ownError is of one swap alone: other steps may be taken all the same.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// swapOne makes one swap, together with those of others if the store can do that.
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

// note keeps what a swap has shown, and hands out the signals that are for ourselves: the
// name may be worked on again by then.
func (t *Table) note(s Swap, r Swapped) {
	switch {
	case r.Err != nil:
		t.cache.drop(s.Name)
	case r.Done && len(s.Entry.Queue) > longest:
		t.cache.drop(s.Name) // others keep their places in it: the next swap would be in vain
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

// Forget drops what was seen of all names. A store calls it when it may have lost data:
// versions that are remembered could come again.
func (t *Table) Forget() { t.cache.clear() }

// Read implements locktable.Table.
func (t *Table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	if t.transactor != nil {
		return t.transactor.Read(ctx, name)
	}
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
			row := locktable.Row{Name: n.Name, Entry: n.Entry, Now: n.Now}
			if err == nil && row.Entry == nil {
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
	p.Outlasts = max(p.Outlasts, widest)
	return p
}

// Close implements locktable.Table.
func (t *Table) Close() error { return t.store.Close() }

// decode reads what is stored: nothing is an entry that is new.
func decode(stored []byte) (*locktable.Entry, error) {
	if len(stored) == 0 {
		return &locktable.Entry{}, nil
	}
	return locktable.Decode(stored)
}
