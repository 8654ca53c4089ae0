package pawl

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/trust"
)

// attempt bounds one request to the backend, by a context that may have its room. The
// caller cancels it.
func (c *Client) attempt(ctx context.Context, room *lazyctx.Room, ttl time.Duration, now time.Time) *lazyctx.Context {
	d := c.settings.RequestTimeout
	if d == 0 {
		d = trust.RequestTimeout(ttl)
	}
	return room.WithDeadline(ctx, now.Add(d))
}

// renewTimeout bounds a renewal, so that there is time to ask again for all but the one
// that hangs: what was in a batch with it is asked for in smaller ones, three times at
// the most. A lease that is alone holds up no other, and may need the time: an engine
// that compares and swaps takes several round trips while others change the name.
func (c *Client) renewTimeout(ttl time.Duration, smaller bool) time.Duration {
	d := c.settings.RequestTimeout
	if d == 0 {
		d = trust.RequestTimeout(ttl)
	}
	if smaller {
		return min(d, ttl/12)
	}
	return min(d, ttl/3)
}
