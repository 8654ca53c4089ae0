package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break ends the lease with this fence, and keeps the name closed for delay (0 to 30
// days), so that its holder can stop. The holder is told who broke it, and until when the
// name is closed. With a delay of 0 the name may be granted before the holder hears of
// it.
//
// Break takes the fence, which Inspect shows, so that a later holder is never hit by
// mistake. The error matches ErrNotHeld if no lease has this fence any more; then nothing
// was changed.
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
	return fmt.Sprintf("pawl: no lease of %q has the fence %d; Inspect shows those that hold it", e.name, e.fence)
}
