package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// longTTL is a TTL that does not end during a measurement.
const longTTL = time.Hour

func exclusive(name string) driver.Claim { return withLongTTL(servertest.Mutex(name)) }
func queued(name string) driver.Claim    { return withLongTTL(servertest.Queued(name)) }
func reading(name string) driver.Claim   { return withLongTTL(servertest.Reader(name)) }

func withLongTTL(c driver.Claim) driver.Claim {
	c.TTL, c.QueueTTL = longTTL, longTTL
	return c
}

// withToken returns the claim with this token.
func withToken(c driver.Claim, token driver.Token) driver.Claim {
	c.Token = token
	return c
}

// requestCtx returns a ctx for one request.
func requestCtx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

func acquire(d driver.Driver, c driver.Claim) (driver.Grant, error) {
	ctx, cancel := requestCtx()
	defer cancel()
	return d.Acquire(ctx, c)
}

func expectHeld(d driver.Driver, c driver.Claim) error {
	if _, err := acquire(d, c); !errors.Is(err, driver.ErrHeld) {
		return fmt.Errorf("%s: %w; want ErrHeld", c.Name, err)
	}
	return nil
}

func release(d driver.Driver, c driver.Claim) error {
	ctx, cancel := requestCtx()
	defer cancel()
	return d.Release(ctx, servertest.Lease(c))
}

func acquireAndRelease(d driver.Driver, c driver.Claim) error {
	if _, err := acquire(d, c); err != nil {
		return err
	}
	return release(d, c)
}

func queueAndLeave(d driver.Driver, c driver.Claim) error {
	if err := expectHeld(d, c); err != nil {
		return err
	}
	return release(d, c)
}

func renewLease(d driver.Driver, c driver.Claim) error {
	ctx, cancel := requestCtx()
	defer cancel()
	answers, err := d.Renew(ctx, []driver.LeaseRef{servertest.Lease(c)})
	return errors.Join(append(answers, err)...)
}

func inspect(d driver.Driver, name string) error {
	ctx, cancel := requestCtx()
	defer cancel()
	_, err := d.Inspect(ctx, name)
	return err
}

// pageSize is the number of names on a page of a list.
const pageSize = 100

func listPage(d driver.Driver) error {
	l, ok := driver.As[driver.Lister](d)
	if !ok {
		return errors.ErrUnsupported
	}
	ctx, cancel := requestCtx()
	defer cancel()
	n := 0
	for _, err := range l.List(ctx, "") {
		if err != nil {
			return err
		}
		if n++; n == pageSize {
			break
		}
	}
	return nil
}

// breakLease breaks the lease with this fence of a claim.
func breakLease(d driver.Driver, c driver.Claim, fence uint64, delay time.Duration) error {
	b, ok := driver.As[driver.LeaseBreaker](d)
	if !ok {
		return errors.ErrUnsupported
	}
	ctx, cancel := requestCtx()
	defer cancel()
	return b.Break(ctx, c.Name, fence, delay, driver.Owner{Client: "growth"})
}

// acquireWhenOpen waits for the end of the delay after a break, and takes the name.
func acquireWhenOpen(d driver.Driver, c driver.Claim) (driver.Grant, error) {
	for {
		g, err := acquire(d, c)
		held, refused := errors.AsType[*driver.HeldError](err)
		if !refused || held.ClosedFor == 0 {
			return g, err
		}
		time.Sleep(held.ClosedFor)
	}
}

// acquireAndBreak takes a lease and breaks it. The TTL is short, because a backend
// remembers a broken lease until it would have ended.
func acquireAndBreak(d driver.Driver, c driver.Claim) error {
	c.TTL = time.Second
	grant, err := acquire(d, c)
	if err != nil {
		return err
	}
	return breakLease(d, c, grant.Fence, 0)
}

// watch makes g.changes receive a value when a name changes.
func (g *loadedServer) watch(d driver.Driver, name string) error {
	w, ok := driver.As[driver.Watcher](d)
	if !ok {
		return errors.ErrUnsupported
	}
	g.stops = append(g.stops, w.Watch(name, func() {
		select {
		case g.changes <- struct{}{}:
		default: // g.changes is full
		}
	}))
	return nil
}

// drainTime is the longest time between two reports of pending changes.
const drainTime = 50 * time.Millisecond

// drainChanges waits until no watch has reported a change for drainTime.
func (g *loadedServer) drainChanges() {
	for {
		select {
		case <-g.changes:
		case <-time.After(drainTime):
			return
		}
	}
}
