package pawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
//
// The holder is told the client that broke it; [WithBy] and [WithReason] add the person
// and the reason, as labels of LostError.By. A forced claim ([Mutex.ForceLock]) says the
// same with [WithLabel].
func (c *Client) Break(ctx context.Context, name string, fence uint64, delay time.Duration, options ...BreakOption) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	by := c.settings.owner
	if len(options) > 0 {
		by.Labels = maps.Clone(by.Labels)
		if by.Labels == nil {
			by.Labels = map[string]string{}
		}
		for _, set := range options {
			set(by.Labels)
		}
		if err := by.Validate(); err != nil {
			return err
		}
	}
	stored, err := c.stored(name)
	if err != nil {
		return err
	}
	b, ok := driver.As[driver.LeaseBreaker](c.driver)
	if !ok {
		return c.unsupported("break a lease")
	}
	err = b.Break(ctx, stored, fence, delay, by)
	if errors.Is(err, ErrNotHeld) {
		return &noLeaseError{stored, fence}
	}
	return c.said("break", stored, err)
}

// A BreakOption says more of who breaks a lease. [WithBy] and [WithReason] return one.
type BreakOption func(labels map[string]string)

// WithBy says which person breaks a lease, as the label "by". Options.Labels has the
// limits of labels.
func WithBy(who string) BreakOption {
	return func(labels map[string]string) { labels["by"] = who }
}

// WithReason says why a lease is broken, as the label "reason". Options.Labels has the
// limits of labels.
func WithReason(why string) BreakOption {
	return func(labels map[string]string) { labels["reason"] = why }
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
