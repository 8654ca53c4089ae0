package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

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
	stored, err := c.stored(name)
	if err != nil {
		return Entry{}, err
	}
	e, err := c.driver.Inspect(ctx, stored)
	return c.shown(e), c.said("read", stored, err)
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
		lister, ok := driver.As[driver.Lister](c.driver)
		if !ok {
			yield(Entry{}, c.unsupported("list its names"))
			return
		}
		for e, err := range lister.List(ctx, c.space+prefix) {
			if !yield(c.shown(e), c.said("list", c.space+prefix, err)) {
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
	d, ok := driver.As[driver.Diagnoser](c.driver)
	if !ok {
		return nil, c.unsupported("examine itself")
	}
	findings, err := d.Diagnose(ctx)
	return findings, c.said("examine", "", err)
}

// Owner returns what this client's leases have as their Owner, to find its own among
// those that Inspect shows; a lease with [WithLabel] has more labels. Owners of different
// clients differ in Client, unless they were given one Options.ID.
func (c *Client) Owner() Owner {
	if !c.made() {
		return Owner{}
	}
	return c.settings.ownerCopy()
}

// Properties returns facts about the backend: whose clock decides, what fences survive,
// whether it pushes. Where ends with the namespace, if the client has one.
func (c *Client) Properties() Properties {
	if !c.made() {
		return Properties{}
	}
	p := c.driver.Properties()
	if c.space != "" {
		p.Where = cmp.Or(p.Where, p.Backend) + " " + strings.TrimSuffix(c.space, ":")
	}
	return p
}

// said makes a driver's error one of ours.
func (c *Client) said(op Op, name string, err error) error {
	if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return unavailable(c.backend, op, name, err)
}

func (c *Client) unsupported(what string) error {
	return fmt.Errorf("pawl: the backend %s cannot %s: %w", c.backend, what, errors.ErrUnsupported)
}
