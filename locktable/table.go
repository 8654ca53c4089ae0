package locktable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/watching"
)

// A Table stores entries by name, and runs a function on one entry atomically. A backend
// needs only rows of names and bytes, with transactions or compare-and-swap.
type Table interface {
	// Update runs f for each step, on the entry of the step's name and in an atomic step
	// of its own (one transaction for all steps is fine). f gets the index of the step,
	// the entry as stored (new if there is none) and the backend's time. f sets e.Changed
	// and e.Signals: Update stores a changed entry before it returns, and then sends its
	// signals. If a step must be repeated, Update runs f again on the entry as it is then
	// stored. A name may occur more than once.
	//
	// A step with HasEnd must change nothing after the end of ctx, see [driver.End].
	// So the table compares that end with its clock inside the step, after the last point
	// at which the step may be delayed: once it has the row's lock, or in the condition
	// of the write. If no request of Update can take effect after Update returns, the
	// table may check ctx there instead.
	//
	// An entry that cannot be decoded is an error for its name, never an empty entry.
	// After an error the outcome is unknown: some names may have been changed.
	Update(ctx context.Context, steps []Step, f func(i int, e *Entry, now Instant)) error

	// Read returns the entry as stored, with all waiters, and the backend's time. It may
	// miss steps that are still under way.
	Read(ctx context.Context, name string) (*Entry, Instant, error)

	// Scan yields the stored entries whose names start with prefix, in byte order of the
	// names. Scan yields an error of one row with the row's name, and continues; any
	// other error ends it.
	Scan(ctx context.Context, prefix string) iter.Seq2[Row, error]

	Properties() driver.Properties
	Close() error
}

// Watchable is a table with its own way to report changes.
type Watchable interface {
	// Watch is the method of [driver.Watcher]. The driver calls it for a name that it
	// does not watch yet. Closing the table ends all watches.
	Watch(name string, f func()) (stop func())
}

// A Step is one change of one entry. Tables need its name and HasEnd; WithRows needs the
// rest.
type Step struct {
	Name   string
	Token  driver.Token // the claim, if the step concerns its place in the queue; otherwise zero
	Place  bool         // the step needs the position of Token's place, or of the place that Token would take
	Ticket uint64       // with Place, the ticket of the claim, see driver.Claim
	HasEnd bool         // the step has an end, see Table.Update
}

// A Row is one entry of a scan.
type Row struct {
	Name  string
	Entry *Entry
	Now   Instant
}

// Driver is the driver over a Table. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker and driver.FenceRaiser.
type Driver struct {
	table  Table
	inbox  string
	closed atomic.Bool

	listeners driver.Listeners
	watchers  driver.Watchers
	watching  *watching.Watching // nil unless the table is Pushing
}

// New makes a driver over a table. inbox is the address of this client's signals. The
// table sends each signal of an entry to the inbox in the signal, and passes signals for
// its own inbox to [Driver.Deliver].
func New(t Table, inbox string) *Driver {
	d := &Driver{table: t, inbox: inbox}
	switch t := t.(type) {
	case Pushing:
		d.watching = watching.New(t.Subscribe, d.mark)
		d.watchers.OnFirstWatch(d.watching.Watch)
	case Watchable:
		d.watchers.OnFirstWatch(t.Watch)
	}
	return d
}

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	// The table keeps copies.
	c.Owner, c.Value, c.ValueBelow = c.Owner.Clone(), bytes.Clone(c.Value), bytes.Clone(c.ValueBelow)
	a := struct { // one allocation for all variables that escape
		claim   driver.Claim
		step    [1]Step
		grant   driver.Grant
		refused error
	}{claim: c, step: [1]Step{{Name: c.Name, Token: c.Token, Place: true, Ticket: c.Ticket, HasEnd: true}}}
	err := d.run(ctx, "acquire", c.Name, a.step[:], func(_ int, e *Entry, now Instant) {
		a.grant, a.refused = e.Acquire(now, &a.claim, d.inbox)
	})
	if err != nil {
		return driver.Grant{}, err
	}
	return a.grant, a.refused
}

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	name, steps := "", make([]Step, len(leases))
	for i, l := range leases {
		err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL), driver.ValidateValue(l.Value))
		if err != nil {
			return nil, err
		}
		steps[i].Name, steps[i].HasEnd = l.Name, l.Value != nil
	}
	if len(steps) == 1 {
		name = steps[0].Name
	}
	answers := make([]error, len(leases))
	err := d.run(ctx, "renew", name, steps, func(i int, e *Entry, now Instant) {
		l := leases[i]
		l.Value = bytes.Clone(l.Value)
		answers[i] = e.Renew(now, &l)
	})
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt && len(leases) > 1 {
		return d.renewHalves(ctx, leases), nil
	}
	if stepsErr, ok := errors.AsType[*StepsError](err); ok {
		for i, err := range stepsErr.Failed {
			answers[i] = d.wrapErr(ctx, "renew", leases[i].Name, err)
		}
		return answers, nil
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// StepsError is the error of an Update in which some steps failed; the others took
// effect. Failed has the errors by the index of the step.
type StepsError struct{ Failed map[int]error }

func (e *StepsError) Error() string { return fmt.Sprintf("%d steps failed", len(e.Failed)) }

// renewHalves renews each half separately, recursively, until only the damaged entries
// fail. So a damaged entry costs no other holder its lease.
func (d *Driver) renewHalves(ctx context.Context, leases []driver.LeaseRef) []error {
	var answers []error
	for half := range slices.Chunk(leases, (len(leases)+1)/2) {
		halfAnswers, err := d.Renew(ctx, half)
		if err != nil {
			halfAnswers = slices.Repeat([]error{err}, len(half))
		}
		answers = append(answers, halfAnswers...)
	}
	return answers
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("minimum hold", l.MinHold), driver.ValidateValue(l.Value))
	if err != nil {
		return err
	}
	l.Value = bytes.Clone(l.Value)
	r := struct {
		lease  driver.LeaseRef
		step   [1]Step
		answer error
	}{lease: l, step: [1]Step{{Name: l.Name, Token: l.Token, HasEnd: l.HasEnd || l.Value != nil}}}
	err = d.run(ctx, "release", l.Name, r.step[:], func(_ int, e *Entry, now Instant) {
		r.answer = e.Release(now, &r.lease)
	})
	return cmp.Or(err, r.answer)
}

// Break implements driver.LeaseBreaker.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate())
	if err != nil {
		return err
	}
	by = by.Clone()
	var answer error
	err = d.run(ctx, "break", name, []Step{{Name: name}}, func(_ int, e *Entry, now Instant) {
		answer = e.Break(now, fence, delay, by)
	})
	return cmp.Or(err, answer)
}

// RaiseFence implements driver.FenceRaiser.
func (d *Driver) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	err := errors.Join(driver.ValidateName(l.Name), driver.ValidateFence(fence), driver.ValidateValue(l.Value))
	if err != nil {
		return 0, err
	}
	l.Value = bytes.Clone(l.Value)
	var raised uint64
	var answer error
	err = d.run(ctx, "raise", l.Name, []Step{{Name: l.Name}}, func(_ int, e *Entry, now Instant) {
		raised, answer = e.Raise(now, &l, fence)
	})
	if err != nil {
		return 0, err
	}
	return raised, answer
}

// Inspect implements driver.Driver.
func (d *Driver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := driver.ValidateName(name); err != nil {
		return driver.Entry{}, err
	}
	if err := d.ready(ctx); err != nil {
		return driver.Entry{}, err
	}
	e, now, err := d.table.Read(ctx, name)
	if err != nil {
		return driver.Entry{}, d.wrapErr(ctx, "read", name, err)
	}
	return e.Public(now, name), nil
}

// List implements driver.Lister.
func (d *Driver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if err := d.ready(ctx); err != nil {
			yield(driver.Entry{}, err)
			return
		}
		for row, err := range d.table.Scan(ctx, prefix) {
			if err != nil {
				if !yield(driver.Entry{Name: row.Name}, d.wrapErr(ctx, "list", cmp.Or(row.Name, prefix), err)) || row.Name == "" {
					return
				}
				continue
			}
			if !strings.HasPrefix(row.Name, prefix) {
				continue // a table may yield more names
			}
			e := row.Entry.Public(row.Now, row.Name)
			if len(e.Holders)+len(e.Waiters) == 0 && e.ClosedFor == 0 {
				continue // it has only a fence or a value
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) { return d.listeners.Listen(f) }

// Watch implements driver.Watcher. A table that is neither [Pushing] nor [Watchable]
// reports no changes, and its Properties say so.
func (d *Driver) Watch(name string, f func()) (stop func()) { return d.watchers.Watch(name, f) }

// Deliver passes a signal for this driver's inbox to its listeners, or to a watch.
func (d *Driver) Deliver(s driver.Signal) {
	switch {
	case s.Kind == signalChanged && d.watching != nil:
		d.watching.Notify(s.Token)
		return
	case s.Kind == driver.SignalRetry && s.Token.IsZero():
		d.watchers.NotifyAll()
	}
	d.listeners.Notify(s)
}

// Properties implements driver.Driver.
func (d *Driver) Properties() driver.Properties {
	p := d.table.Properties()
	p.PushesChanges = p.PushesChanges && (d.watching == nil || !d.watching.MissesChanges())
	return p
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.watchers.Close()
	if d.watching != nil {
		d.watching.Close()
	}
	return d.table.Close()
}

func (d *Driver) run(ctx context.Context, op driver.Op, name string, steps []Step, f func(i int, e *Entry, now Instant)) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	hasEnd := slices.ContainsFunc(steps, func(s Step) bool { return s.HasEnd })
	if !hasEnd && ctx.Err() != nil { // with HasEnd the table checks ctx, inside the step
		return ctx.Err()
	}
	err := d.table.Update(ctx, steps, f)
	if _, partial := errors.AsType[*StepsError](err); err == nil || partial {
		return err
	}
	return d.wrapErr(ctx, op, name, err)
}

func (d *Driver) ready(ctx context.Context) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	return ctx.Err()
}

// wrapErr adds the operation and the name to an error of the table. An error of the
// caller's ctx stays as it is, unless the table has wrapped it in a [*driver.Error].
func (d *Driver) wrapErr(ctx context.Context, op driver.Op, name string, err error) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	isCtxErr := func(err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }
	typed, ok := errors.AsType[*driver.Error](err)
	if errors.Is(err, driver.ErrClosed) || isCtxErr(err) && (!ok || !isCtxErr(typed)) {
		return err
	}
	p := d.table.Properties()
	wrapped := driver.Error{Backend: cmp.Or(p.Location, p.Backend), Err: err}
	if ok {
		wrapped = *typed
	}
	_, corrupt := errors.AsType[*CorruptError](err)
	wrapped.Op, wrapped.Name, wrapped.Permanent = op, name, wrapped.Permanent || corrupt
	return &wrapped
}
