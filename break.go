package pawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break ends the lease with this fence, and keeps the name closed for delay (0 to 30
// days), so that its holder can stop. The client of the holder then loses the lease with
// ReasonBroken: LostError.By identifies the client that called Break, and
// LostError.StopBy is when the name opens. With a delay of 0 the next holder may begin
// before the holder learns of the break. [WithBy] and [WithReason] add the person and the
// reason to LostError.By, as labels. If there are more than 16 labels then, the client's
// own that come last in byte order are left out.
//
// Inspect shows the fence. Break takes it so as not to end the lease of a later holder.
// The error matches ErrNoSuchLease if no lease has this fence any more, and nothing was
// changed; ErrUnavailable, ErrInvalid or ErrClosed; errors.ErrUnsupported if the backend
// cannot break leases; or ctx's own.
func (c *Client) Break(ctx context.Context, name string, fence uint64, delay time.Duration, options ...BreakOption) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	by := c.settings.owner
	if len(options) > 0 {
		said := map[string]string{}
		for _, set := range options {
			if set != nil { // so that a condition may leave one out
				set(said)
			}
		}
		by.Labels = said
		for _, k := range slices.Sorted(maps.Keys(c.settings.Labels)) {
			if _, ok := said[k]; !ok && len(said) < driver.MaxLabels {
				said[k] = c.settings.Labels[k]
			}
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
	if errors.Is(err, ErrNoSuchLease) {
		return &noLeaseError{stored, fence}
	}
	return c.asClientError(ctx, "break", stored, err)
}

// A BreakOption adds a label to LostError.By. [WithBy] and [WithReason] return one.
type BreakOption func(labels map[string]string)

// WithBy names the person who breaks a lease, as the label "by". Options.Labels has the
// limits of labels.
func WithBy(who string) BreakOption {
	return func(labels map[string]string) { labels["by"] = who }
}

// WithReason says why a lease is broken, as the label "reason". Options.Labels has the
// limits of labels.
func WithReason(why string) BreakOption {
	return func(labels map[string]string) { labels["reason"] = why }
}

// noLeaseError is ErrNoSuchLease for Break, whose caller has a fence, and no token.
type noLeaseError struct {
	name  string
	fence uint64
}

func (e *noLeaseError) Is(target error) bool { return target == ErrNoSuchLease }

func (e *noLeaseError) Error() string {
	return fmt.Sprintf("pawl: no lease of %q has the fence %d; Inspect shows those that hold it", e.name, e.fence)
}
