package pawl

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// NewAsleep is New with a clock of a machine that sleeps: slept returns the time that has
// passed only on the boot clock, and not on the monotonic clock.
func NewAsleep(d driver.Driver, o *Options, slept func() time.Duration) *Client {
	s, err := o.toSettings()
	if err != nil {
		panic(err)
	}
	return start(d, s, func() clock.Reading { return clock.Reading{Mono: time.Now(), Slept: slept()} })
}

// OpenWith is Open with a function that opens the driver.
func OpenWith(ctx context.Context, open func() (driver.Driver, error), o *Options) (*Client, error) {
	return openWith(ctx, open, o)
}

// CloseWithin is the last part of Shutdown: Close, bounded by ctx.
func (c *Client) CloseWithin(ctx context.Context) error { return c.close(ctx) }

// LocalQueues returns the number of names that have a local queue.
func (c *Client) LocalQueues() int { return c.queues.Names() }

// Leases returns the number of holds that are being renewed.
func (c *Client) Leases() int { return c.renewals.Len() }

// Inboxes returns the number of claims that listen for signals.
func (c *Client) Inboxes() int { return c.inboxes.Len() }
