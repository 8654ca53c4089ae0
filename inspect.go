package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// What can be seen of a name. None of it holds a token.
type (
	Entry      = driver.Entry      // a name: its last fence, who holds it, who waits
	Holder     = driver.Holder     // somebody who holds it
	Waiter     = driver.Waiter     // somebody in its queue
	Owner      = driver.Owner      // who that is
	Properties = driver.Properties // facts about the backend
	Finding    = driver.Finding    // what a careful operator would change there
)

// Inspect reads one name: who holds it and who waits. A name that nobody uses is an Entry with nothing in it.
func (c *Client) Inspect(ctx context.Context, name string) (Entry, error) {
	if err := c.usable(ctx); err != nil {
		return Entry{}, err
	}
	e, err := c.driver.Inspect(ctx, name)
	return e, c.said("read", name, err)
}

// List yields the names that start with prefix and that somebody holds or waits for, in byte order; the empty
// prefix means all. It is no snapshot: each entry is true at its own instant. An error is the last that is
// yielded; it Is errors.ErrUnsupported if the backend cannot list.
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

// Break ends the lease with this fence, whoever holds it, and keeps the name closed for delay, 0 to 30 days:
// so long its holder has to stop, who is told by whom and until when. The error Is ErrNotHeld if no lease has
// this fence any more: then nothing was changed. The fence is asked for so that a later holder is never hit
// by mistake; Inspect shows it.
func (c *Client) Break(ctx context.Context, name string, fence uint64, delay time.Duration) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	b, ok := c.driver.(driver.LeaseBreaker)
	if !ok {
		return c.unsupported("break a lease")
	}
	err := b.Break(ctx, name, fence, delay, c.settings.owner)
	if errors.Is(err, ErrNotHeld) {
		return &noLeaseError{name, fence}
	}
	return c.said("break", name, err)
}

// noLeaseError is ErrNotHeld for Break, whose caller has a fence, and no token.
type noLeaseError struct {
	name  string
	fence uint64
}

func (e *noLeaseError) Is(target error) bool { return target == ErrNotHeld }

func (e *noLeaseError) Error() string {
	return fmt.Sprintf("pawl: no lease of %q has the fence %d", e.name, e.fence)
}

// Diagnose examines the backend's settings, and what this client may do there: what a careful operator would change,
// most serious first. Nothing found is an empty list. It changes no lock. The error Is errors.ErrUnsupported if
// the backend has no doctor.
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

// Properties are facts about the backend: whose clock decides, what fences survive, whether it pushes.
func (c *Client) Properties() Properties { return c.driver.Properties() }

func (c *Client) usable(ctx context.Context) error {
	if ctx == nil {
		return &InvalidError{What: "ctx", Problem: "is nil", Allowed: "a context"}
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
