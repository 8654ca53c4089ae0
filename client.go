package pawl

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/below"
	"github.com/pawl-go/pawl/internal/clock"
)

// Client makes locks over one backend, and renews and watches all of them. A process
// needs one for each backend. Many goroutines may use it.
type Client struct {
	*core
	space   string // what stands before each name in the backend; see Namespace
	view    bool   // of another client, which closes it
	refusal error  // of a bad namespace
}

// New returns a client over a driver, for example one of redislock.New or memlock.New.
// Close closes the driver too, which frees what it opened itself and nothing that it was
// given. o may be nil. The error matches ErrInvalid; it is also for times in o that are
// shorter than the backend can keep, see [Properties].
func New(d driver.Driver, o *Options) (*Client, error) {
	if v := reflect.ValueOf(d); d == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &InvalidError{What: "driver", Problem: "is nil", Allowed: "a backend's driver"}
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	if err := s.fits(d.Properties()); err != nil {
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}

func start(d driver.Driver, s settings, now func() clock.Reading) *Client {
	c := &Client{core: newCore(d, s, now)}
	if s.Namespace != "" {
		c.space = spaceOf("", s.Namespace)
	}
	if s, ok := driver.As[driver.Signaler](d); ok {
		c.hears = true
		c.stopListen = s.Listen(c.signal)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stopRun = cancel
	go func() {
		defer close(c.ran)
		c.keepRenewing(ctx)
	}()
	return c
}

func init() {
	below.Driver = func(c any) driver.Driver { return c.(*Client).driver } //nolint:forcetypeassert // it is for no other
}

func (c *Client) made() bool { return c != nil && c.core != nil }

// usable refuses a call of a client that New has not made, or that is closed.
func (c *Client) usable(ctx context.Context) error {
	if !c.made() {
		return errNotMade
	}
	if c.refusal != nil {
		return c.refusal
	}
	return c.checkOpen(ctx)
}

func (c *Client) lock(name string, options []LockOption) lock {
	l := lock{name: name}
	if c.made() {
		l.c, l.o.ttl = c.core, c.settings.TTL
		l.name, l.space, l.refusal = c.space+name, c.space, c.refusal
	}
	for _, option := range options {
		if option != nil { // so that one may be left out by a condition
			option.ofLock(&l.o)
		}
	}
	return l
}

// Format implements fmt.Formatter. Clients and leases hold tokens, in fields where fmt
// prints them whatever their type says of itself: so they print as their names, with
// every verb.
func (c *Client) Format(f fmt.State, _ rune) {
	if !c.made() {
		_, _ = io.WriteString(f, "pawl client of nothing")
		return
	}
	_, _ = fmt.Fprintf(f, "pawl client %s of %s", c.settings.ID, c.backend)
}
