package locktable

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Table stores entries by name and runs a function on one atomically. It is all that a backend has to be:
// transactions, or compare-and-swap, on rows of names and bytes.
type Table interface {
	// Update runs f on the entry of each name, each in an atomic step of its own (one transaction for all is
	// fine) and at the backend's time. f gets the index of the name, the entry as stored (new if there is
	// none) and the time, and reports with e.Changed and e.Signals what it did: a changed entry is stored
	// before Update returns, then its signals are sent. If a step has to be repeated, f is run again on a
	// fresh entry. A name need not appear once only.
	//
	// An entry that cannot be decoded is an error for its name, never an empty entry. On an error the caller
	// knows nothing: some names may have been changed.
	Update(ctx context.Context, names []string, f func(i int, e *Entry, now Instant)) error

	// Read returns the entry as stored, and the backend's time. It need not see steps under way.
	Read(ctx context.Context, name string) (*Entry, Instant, error)

	// Scan yields the stored entries whose names start with prefix, in byte order of the names. An error that
	// concerns one row comes with its name.
	Scan(ctx context.Context, prefix string) iter.Seq2[Row, error]

	Properties() driver.Properties
	Close() error
}

// A Row is one entry of a scan.
type Row struct {
	Name  string
	Entry *Entry
	Now   Instant
}

// Driver makes a backend of a Table. It implements driver.Driver, driver.Signaler, driver.Lister,
// driver.Breaker and driver.FenceRaiser.
type Driver struct {
	table  Table
	inbox  string
	closed atomic.Bool

	listeners driver.Listeners
}

// New makes a driver over a table. inbox is where this client's signals go: the table sends the signals of
// an entry to the inboxes that they name, and hands what comes in for its own to [Driver.Deliver].
func New(t Table, inbox string) *Driver { return &Driver{table: t, inbox: inbox} }

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	c.Owner = shown(c.Owner) // the table keeps it, and the caller may go on with its map
	a := struct {            // one allocation for all that outlives this frame
		claim driver.Claim
		name  [1]string
		grant driver.Grant
		held  *driver.HeldError
	}{claim: c, name: [1]string{c.Name}}
	err := d.run(ctx, "acquire", c.Name, a.name[:], func(_ int, e *Entry, now Instant) {
		a.grant, a.held = e.Acquire(now, &a.claim, d.inbox)
	})
	switch {
	case err != nil:
		return driver.Grant{}, err
	case a.held != nil:
		return driver.Grant{}, a.held
	}
	return a.grant, nil
}

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.Lease) ([]error, error) {
	name, names := "", make([]string, len(leases))
	for i, l := range leases {
		if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL)); err != nil {
			return nil, err
		}
		names[i] = l.Name
	}
	if len(names) == 1 {
		name = names[0]
	}
	answers := make([]error, len(leases))
	err := d.run(ctx, "renew", name, names, func(i int, e *Entry, now Instant) {
		answers[i] = e.Renew(now, leases[i].Token, leases[i].TTL)
	})
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt && len(leases) > 1 {
		return d.renewHalves(ctx, leases), nil
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// renewHalves narrows the trouble down to the entries that are damaged, so that they cost nobody else a lease.
func (d *Driver) renewHalves(ctx context.Context, leases []driver.Lease) []error {
	var answers []error
	for half := range slices.Chunk(leases, (len(leases)+1)/2) {
		some, err := d.Renew(ctx, half)
		if err != nil {
			some = slices.Repeat([]error{err}, len(half))
		}
		answers = append(answers, some...)
	}
	return answers
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.Lease) error {
	if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("linger", l.Linger)); err != nil {
		return err
	}
	r := struct {
		lease  driver.Lease
		name   [1]string
		answer error
	}{lease: l, name: [1]string{l.Name}}
	err := d.run(ctx, "release", l.Name, r.name[:], func(_ int, e *Entry, now Instant) {
		r.answer = e.Release(now, r.lease.Token, r.lease.Linger)
	})
	if err != nil {
		return err
	}
	return r.answer
}

// Break implements driver.Breaker.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate())
	if err != nil {
		return err
	}
	by = shown(by)
	var answer error
	err = d.run(ctx, "break", name, []string{name}, func(_ int, e *Entry, now Instant) {
		answer = e.Break(now, fence, delay, by)
	})
	if err != nil {
		return err
	}
	return answer
}

// RaiseFence implements driver.FenceRaiser.
func (d *Driver) RaiseFence(ctx context.Context, l driver.Lease, fence uint64) (uint64, error) {
	if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateFence(fence)); err != nil {
		return 0, err
	}
	var raised uint64
	var answer error
	err := d.run(ctx, "raise", l.Name, []string{l.Name}, func(_ int, e *Entry, now Instant) {
		raised, answer = e.Raise(now, &l, fence)
	})
	if err != nil {
		return 0, err
	}
	return raised, answer
}

// Entry implements driver.Driver.
func (d *Driver) Entry(ctx context.Context, name string) (driver.Entry, error) {
	if err := driver.ValidateName(name); err != nil {
		return driver.Entry{}, err
	}
	if err := d.ready(ctx); err != nil {
		return driver.Entry{}, err
	}
	e, now, err := d.table.Read(ctx, name)
	if err != nil {
		return driver.Entry{}, d.trouble(ctx, "read", name, err)
	}
	return e.People(now, name), nil
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
				yield(driver.Entry{}, d.trouble(ctx, "list", cmp.Or(row.Name, prefix), err))
				return
			}
			if !strings.HasPrefix(row.Name, prefix) {
				continue // a table may be generous
			}
			e := row.Entry.People(row.Now, row.Name)
			if len(e.Holders)+len(e.Waiters) == 0 && e.ClosedFor == 0 {
				continue // remembered for its fence only
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) { return d.listeners.Listen(f) }

// Deliver hands a signal that came in for this driver's inbox to whoever listens.
func (d *Driver) Deliver(s driver.Signal) { d.listeners.Tell(s) }

// Inbox is the address that New was given.
func (d *Driver) Inbox() string { return d.inbox }

// Properties implements driver.Driver.
func (d *Driver) Properties() driver.Properties { return d.table.Properties() }

// Close implements driver.Driver.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.table.Close()
}

func (d *Driver) run(ctx context.Context, op, name string, names []string, f func(i int, e *Entry, now Instant)) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.table.Update(ctx, names, f); err != nil {
		return d.trouble(ctx, op, name, err)
	}
	return nil
}

func (d *Driver) ready(ctx context.Context) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	return ctx.Err()
}

// trouble gives an error of the table its operation and its name. What is already typed, and the end of the
// caller's own ctx, pass as they are. The end of a ctx that is not the caller's is trouble like any other.
func (d *Driver) trouble(ctx context.Context, op, name string, err error) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	if errors.Is(err, driver.ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	said := driver.Error{Backend: d.table.Properties().Backend, Err: err}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		said = *e
	}
	_, corrupt := errors.AsType[*CorruptError](err)
	said.Op, said.Name, said.Permanent = op, name, said.Permanent || corrupt
	return &said
}
