package pawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/trust"
)

// BreakOptions say how [Client.Break] ends a lease. The zero value and nil work.
type BreakOptions struct {
	// Delay is the time for which the name stays closed, so that the holder can stop: up
	// to 30 days. Default: the TTL of the lease, because a holder that cannot reach the
	// backend also stops within that time. A negative value means no time: the next
	// holder may begin before the old one learns of the break.
	Delay time.Duration

	// By names the person who breaks the lease, and Reason says why. The holder gets them
	// in LostError.By, as the labels "by" and "reason", together with the labels of this
	// client. If that makes more than 16, Break leaves out the client's own labels that
	// come last in byte order. Options.Labels has the limits.
	By, Reason string
}

// Break ends the lease with this fence, and keeps the name closed for Delay, by default
// for the TTL of the lease. The client of the holder then loses the lease with
// ReasonBroken: LostError.By identifies the client that called Break, and
// LostError.StopBy is the time at which the name opens.
//
// Inspect shows the fence. Break takes the fence so that it does not end the lease of a
// later holder. If no lease has this fence any more, Break changes nothing, and its error
// matches ErrNoSuchLease. Otherwise an error matches ErrUnavailable, ErrInvalid or
// ErrClosed, errors.ErrUnsupported if the backend cannot break leases, or ctx's own.
func (c *Client) Break(ctx context.Context, name string, fence uint64, o *BreakOptions) error {
	if err := c.checkUsable(ctx); err != nil {
		return err
	}
	if o == nil {
		o = &BreakOptions{}
	}
	by := o.breaker(&c.settings)
	if err := by.Validate(); err != nil {
		return err
	}
	stored, err := c.stored(name)
	if err != nil {
		return err
	}
	b, ok := driver.As[driver.LeaseBreaker](c.driver)
	if !ok {
		return c.unsupported("break a lease")
	}
	delay := max(0, o.Delay)
	if o.Delay == 0 {
		e, err := c.driver.Inspect(ctx, stored)
		if err != nil {
			return c.asClientError(ctx, "read", stored, err)
		}
		if len(e.Holders) == 0 {
			return &noLeaseError{stored, fence}
		}
		if delay = trust.BreakDelay(e.Holders, fence); delay <= 0 {
			return invalid("Delay", "is missing, and the backend does not show the TTL of the lease", "a time in which the holder can stop")
		}
	}
	err = b.Break(ctx, stored, fence, delay, by)
	if errors.Is(err, ErrNoSuchLease) {
		return &noLeaseError{stored, fence}
	}
	return c.asClientError(ctx, "break", stored, err)
}

// breaker returns the owner for LostError.By: this client, with By and Reason as labels.
func (o *BreakOptions) breaker(s *settings) driver.Owner {
	by := s.owner
	by.Labels = map[string]string{"by": o.By, "reason": o.Reason}
	maps.DeleteFunc(by.Labels, func(_, label string) bool { return label == "" })
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if _, ok := by.Labels[k]; !ok && len(by.Labels) < driver.MaxLabels {
			by.Labels[k] = s.Labels[k]
		}
	}
	return by
}

// noLeaseError is ErrNoSuchLease with a text for the caller of Break, which passed a
// fence and no token.
type noLeaseError struct {
	name  string
	fence uint64
}

func (e *noLeaseError) Is(target error) bool { return target == ErrNoSuchLease }

func (e *noLeaseError) Error() string {
	return fmt.Sprintf("pawl: no lease of %q has the fence %d; Inspect shows its leases", e.name, e.fence)
}
