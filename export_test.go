package pawl

import (
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// NewAsleep is New with a clock that a test puts to sleep: the time that slept answers has passed on the boot
// clock, and not on the monotonic one.
func NewAsleep(d driver.Driver, o *Options, slept func() time.Duration) *Client {
	s, err := o.settle()
	if err != nil {
		panic(err)
	}
	return start(d, s, func() clock.Reading { return clock.Reading{Mono: time.Now(), Slept: slept()} })
}

// Gates is how many names have a local queue.
func (c *Client) Gates() int { return c.queues.Names() }

// Leases is how many holds are being renewed.
func (c *Client) Leases() int { return c.renewer.Len() }

// Inboxes is how many claims listen for signals.
func (c *Client) Inboxes() int { return c.inboxes.Len() }
