package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl/driver"
)

// Entry is what a backend knows of one name. It holds no token. Its fields:
//
//   - Name and Fence: the last fence granted on the name, 0 if none is remembered.
//   - Holders: a [Holder] for each lease.
//   - Waiters: a [Waiter] for each claim in the queue, in the order in which they will be
//     served.
//   - ClosedFor: how much longer nothing will be granted, after a break or an expiry.
type Entry = driver.Entry

// Holder is one lease on a name: its Fence, its Weight out of Limit, its Owner, Since
// when it is held, on the backend's clock, and in how long it ExpiresIn if it is not
// renewed. Released means that it is kept only for its minimum hold.
type Holder = driver.Holder

// Waiter is one claim in the queue of a name: its Weight out of Limit, its Owner, Since
// when it waits, and in how long its place ExpiresIn if the waiter does not keep it.
type Waiter = driver.Waiter

// Owner says who claims, for people to read: the Client's id, its Host and PID, and
// Labels.
type Owner = driver.Owner

// Properties are facts about a backend: its name (Backend), the name and the place as
// errors have them (Where), whose Clock decides what has expired, what FenceSurvives, the
// MinTTL that it can keep (a shorter one is refused), whether it can Push, and whether it
// ReportsDeletions of held names at once.
type Properties = driver.Properties

// Finding is what [Client.Diagnose] found: its Severity ("error": guarantees do not hold,
// "warning": they hold by luck, "info"), its Subject, the Detail, and the Advice.
type Finding = driver.Finding

// Inspect reads one name: who holds it and who waits. The Entry of a name that nobody
// uses is empty.
//
// If holders of one semaphore have different Limits, some of its users were started with
// another one than the rest: each keeps its own, so that no more than the greatest of
// them are held.
func (c *Client) Inspect(ctx context.Context, name string) (Entry, error) {
	if err := c.usable(ctx); err != nil {
		return Entry{}, err
	}
	e, err := c.driver.Inspect(ctx, name)
	return e, c.said("read", name, err)
}

// List yields the names that start with prefix and are held, waited for or closed, in
// byte order; the empty prefix means all. It is no snapshot: each entry is true at its
// own instant.
//
// An error comes with an Entry that has only a Name if it concerns that name alone, whose
// row is damaged: a caller that goes on gets the others. Any other error comes with an
// empty Entry, and is the last thing yielded. It matches errors.ErrUnsupported if the
// backend cannot list.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := c.usable(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		lister, ok := c.driver.(driver.Lister)
		if !ok {
			yield(Entry{}, c.unsupported("list its names"))
			return
		}
		for e, err := range lister.List(ctx, prefix) {
			if !yield(e, c.said("list", prefix, err)) {
				return
			}
		}
	}
}

// Diagnose examines the backend's settings and this client's rights there, and returns
// what a careful operator would change, most serious first: nothing if all is well. It
// changes no lock. The error matches errors.ErrUnsupported if the backend cannot examine
// itself.
func (c *Client) Diagnose(ctx context.Context) ([]Finding, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	d, ok := c.driver.(driver.Diagnoser)
	if !ok {
		return nil, c.unsupported("examine itself")
	}
	findings, err := d.Diagnose(ctx)
	return findings, c.said("examine", "", err)
}

// Properties returns facts about the backend: whose clock decides, what fences survive,
// whether it pushes.
func (c *Client) Properties() Properties {
	if !c.made() {
		return Properties{}
	}
	return c.driver.Properties()
}

// Driver returns the driver below the client, for programs that look at the backend
// themselves. What they change there the client does not know of, and Close closes it.
func (c *Client) Driver() driver.Driver {
	if !c.made() {
		return nil
	}
	return c.driver
}

func (c *Client) usable(ctx context.Context) error {
	if !c.made() {
		return errNotMade
	}
	if ctx == nil {
		return errNoContext
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// said makes a driver's error one of ours.
func (c *Client) said(op, name string, err error) error {
	if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return unavailable(c.backend, op, name, err)
}

func (c *Client) unsupported(what string) error {
	return fmt.Errorf("pawl: the backend %s cannot %s: %w", c.backend, what, errors.ErrUnsupported)
}
