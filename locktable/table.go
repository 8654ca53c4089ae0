package locktable

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
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

	// Scan yields the stored entries whose names start with prefix, in byte order of the names.
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

// Driver makes a backend of a Table. It implements driver.Driver, driver.Signaler, driver.Lister and
// driver.Breaker.
type Driver struct {
	table  Table
	inbox  string
	closed atomic.Bool

	mu        sync.Mutex // protects the listeners; never held while one is called
	listeners []*func(driver.Signal)
}

// New makes a driver over a table. inbox is where this client's signals go: the table sends the signals of
// an entry to the inboxes that they name, and hands what comes in for its own to [Driver.Deliver].
func New(t Table, inbox string) *Driver { return &Driver{table: t, inbox: inbox} }

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	var grant driver.Grant
	var held *driver.HeldError
	err := d.update(ctx, "acquire", c.Name, func(e *Entry, now Instant) {
		grant, held = e.Acquire(now, &c, d.inbox)
	})
	switch {
	case err != nil:
		return driver.Grant{}, err
	case held != nil:
		return driver.Grant{}, held
	}
	return grant, nil
}

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.Lease) ([]error, error) {
	names := make([]string, len(leases))
	for i, l := range leases {
		if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL)); err != nil {
			return nil, err
		}
		names[i] = l.Name
	}
	answers := make([]error, len(leases))
	err := d.run(ctx, "renew", "", names, func(i int, e *Entry, now Instant) {
		answers[i] = e.Renew(now, leases[i].Token, leases[i].TTL)
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.Lease) error {
	if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("linger", l.Linger)); err != nil {
		return err
	}
	var answer error
	err := d.update(ctx, "release", l.Name, func(e *Entry, now Instant) {
		answer = e.Release(now, l.Token, l.Linger)
	})
	if err != nil {
		return err
	}
	return answer
}

// Break implements driver.Breaker.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate())
	if err != nil {
		return err
	}
	var answer error
	err = d.update(ctx, "break", name, func(e *Entry, now Instant) {
		answer = e.Break(now, fence, delay, by)
	})
	if err != nil {
		return err
	}
	return answer
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
		return driver.Entry{}, d.trouble("read", name, err)
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
				yield(driver.Entry{}, d.trouble("list", prefix, err))
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
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners[:len(d.listeners):len(d.listeners)], &f) // Deliver may be reading the old one
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		var rest []*func(driver.Signal)
		for _, l := range d.listeners {
			if l != &f {
				rest = append(rest, l)
			}
		}
		d.listeners = rest
	}
}

// Deliver hands a signal that came in for this driver's inbox to whoever listens.
func (d *Driver) Deliver(s driver.Signal) {
	d.mu.Lock()
	listeners := d.listeners
	d.mu.Unlock()
	for _, f := range listeners {
		(*f)(s)
	}
}

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

// update is run for a single name.
func (d *Driver) update(ctx context.Context, op, name string, f func(e *Entry, now Instant)) error {
	return d.run(ctx, op, name, []string{name}, func(_ int, e *Entry, now Instant) { f(e, now) })
}

func (d *Driver) run(ctx context.Context, op, name string, names []string, f func(i int, e *Entry, now Instant)) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.table.Update(ctx, names, f); err != nil {
		return d.trouble(op, name, err)
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
// caller's own ctx, pass as they are.
func (d *Driver) trouble(op, name string, err error) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrClosed) {
		return err
	}
	var e *driver.Error
	if errors.As(err, &e) {
		said := *e
		said.Op, said.Name = op, name
		return &said
	}
	var corrupt *CorruptError
	return &driver.Error{Backend: d.table.Properties().Backend, Op: op, Name: name, Permanent: errors.As(err, &corrupt), Err: err}
}
