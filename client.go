package pawl

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/clock"
)

// Client makes locks over one backend, renews their leases and detects their loss. A
// process needs one Client for each backend. Many goroutines may use it.
type Client struct {
	*core
	space        string // the prefix of each name in the backend; see Namespace
	isNamespace  bool   // a client made by Namespace, which another client closes
	namespaceErr error  // the error of a bad namespace
}

// New returns a client over a driver, for example memlock.New(nil). o may be nil. Close
// closes the driver too; the driver closes the connections that it opened itself. The
// error matches ErrInvalid; for example, if a TTL in o is shorter than the backend can
// keep: see [Properties].MinTTL.
func New(d driver.Driver, o *Options) (*Client, error) {
	if v := reflect.ValueOf(d); d == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalid("driver", "is nil", "a backend's driver")
	}
	s, err := o.toSettings()
	if err != nil {
		return nil, err
	}
	if err := s.checkTTLs(d.Properties()); err != nil {
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}

func start(d driver.Driver, s settings, now func() clock.Reading) *Client {
	c := &Client{core: newCore(d, s, now)}
	for _, prefix := range s.path {
		c.space = spaceOf(c.space, prefix)
	}
	if s, ok := driver.As[driver.Signaler](d); ok {
		c.isSignaler = true
		c.stopListen = s.Listen(c.handleSignal)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stopRenewing = cancel
	go func() {
		defer close(c.renewingEnded)
		c.keepRenewing(ctx)
	}()
	return c
}

func init() {
	access.SetNamespaces = func(o any, path []string) {
		options := o.(*Options) //nolint:forcetypeassert // callers pass only this type
		options.Namespace, options.path = path[0], path[1:]
	}
	access.Driver = func(c any) driver.Driver {
		client := c.(*Client) //nolint:forcetypeassert // callers pass only this type
		if !client.isMade() {
			return nil
		}
		return client.driver
	}
}

func (c *Client) isMade() bool { return c != nil && c.core != nil }

// checkUsable refuses a call of a client that is a zero value, nil or closed, or that has
// a bad namespace.
func (c *Client) checkUsable(ctx context.Context) error {
	if !c.isMade() {
		return errNotMade
	}
	if c.namespaceErr != nil {
		return c.namespaceErr
	}
	return c.checkOpen(ctx)
}

func (c *Client) lock(name string, options []LockOption) lock {
	l := lock{name: name}
	if c.isMade() {
		l.c, l.o.ttl, l.o.owner = c.core, c.settings.TTL, c.settings.owner
		l.name, l.space, l.namespaceErr = c.space+name, c.space, c.namespaceErr
	}
	for _, option := range options {
		if option != nil { // a caller may pass nil to leave an option out
			option.ofLock(&l.o)
		}
	}
	return l
}

// Format implements fmt.Formatter. It prints the client's ID and backend with every verb,
// because fmt would otherwise print the tokens in the fields.
func (c *Client) Format(f fmt.State, _ rune) {
	if !c.isMade() {
		_, _ = io.WriteString(f, "pawl client without a backend")
		return
	}
	_, _ = fmt.Fprintf(f, "pawl client %s of %s", c.settings.ID, c.backend)
}
