package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
)

// Inspect reads one name: its holders, its waiters and its value. The Entry of a name
// that is not in use has no holders and no waiters. The error matches ErrUnavailable,
// ErrInvalid or ErrClosed, or is ctx's own.
//
// If the holders of one semaphore have different Limits, their programs gave it different
// n: each program keeps to its own n, so no more permits are held than the greatest n.
func (c *Client) Inspect(ctx context.Context, name string) (Entry, error) {
	if err := c.checkUsable(ctx); err != nil {
		return Entry{}, err
	}
	stored, err := c.stored(name)
	if err != nil {
		return Entry{}, err
	}
	e, err := c.driver.Inspect(ctx, stored)
	return c.shown(e), c.asClientError(ctx, "read", stored, err)
}

// List yields the names that start with prefix and are held, waited for or closed, in
// byte order. The empty prefix means all. A name that only keeps a value is not listed:
// see Inspect. List is no snapshot: each entry is true at its own instant.
//
// If the row of one name is damaged, List yields an error with an Entry that has only
// that Name; a caller that goes on gets the other names. Any other error comes with an
// empty Entry and is the last thing yielded. It matches ErrUnavailable, ErrInvalid,
// ErrClosed, or errors.ErrUnsupported if the backend cannot list; or it is ctx's own.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := c.checkUsable(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		lister, ok := driver.As[driver.Lister](c.driver)
		if !ok {
			yield(Entry{}, c.unsupported("list its names"))
			return
		}
		for e, err := range lister.List(ctx, c.space+prefix) {
			if !yield(c.shown(e), c.asClientError(ctx, "list", c.space+prefix, err)) {
				return
			}
		}
	}
}

// Diagnose examines the backend's settings and this client's rights there. It returns a
// Finding for each setting that a careful operator would change, most serious first, and
// one without Advice that has the server's version. A client of a namespace gets no
// findings about names of others. Diagnose changes no lock. The error matches
// ErrUnavailable, ErrClosed, or errors.ErrUnsupported if the backend has no diagnosis; or
// it is ctx's own.
func (c *Client) Diagnose(ctx context.Context) ([]Finding, error) {
	if err := c.checkUsable(ctx); err != nil {
		return nil, err
	}
	d, ok := driver.As[driver.Diagnoser](c.driver)
	if !ok {
		return nil, c.unsupported("examine itself")
	}
	findings, err := d.Diagnose(access.WithPrefix(ctx, c.space))
	return findings, c.asClientError(ctx, "examine", "", err)
}

// Self returns the Owner of this client's leases, to find them among those that Inspect
// returns. A lease with [WithLabel] has more labels. Different clients have Owners with
// different Client fields, unless both have the same Options.ID.
func (c *Client) Self() Owner {
	if !c.isMade() {
		return Owner{}
	}
	return c.settings.owner.Clone() // callers may change it
}

// Properties returns facts about the backend, such as whose clock decides, and whether it
// pushes signals. Location ends with the namespace, if the client has one.
func (c *Client) Properties() Properties {
	if !c.isMade() {
		return Properties{}
	}
	p := c.driver.Properties()
	if c.space != "" {
		p.Location = cmp.Or(p.Location, p.Backend) + " " + strings.TrimSuffix(c.space, ":")
	}
	return p
}

// asClientError turns a driver's error into one of this package.
func (c *Client) asClientError(ctx context.Context, op Op, name string, err error) error {
	if err == nil || errors.Is(err, ErrNoSuchLease) || isEndOf(ctx, err) {
		return err
	}
	return unavailable(c.backend, op, name, err)
}

func (c *Client) unsupported(what string) error {
	return fmt.Errorf("pawl: the backend %s cannot %s: %w", c.backend, what, errors.ErrUnsupported)
}
