package locktable

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Grouped is a table that can run the steps of several names as one atomic step.
type Grouped interface {
	Table

	// UpdateAll runs the steps as Update does, but in one atomic step for all names. If f
	// returns false, UpdateAll skips the remaining steps, stores the changes so far, and
	// returns no error. If the table cannot run these steps as one, UpdateAll changes
	// nothing and returns [errors.ErrUnsupported].
	UpdateAll(ctx context.Context, steps []Step, f func(i int, e *Entry, now Instant) bool) error
}

// GroupedDriver is a Driver over a table that is Grouped. It also implements
// driver.AllAcquirer.
type GroupedDriver struct {
	*Driver
	grouped Grouped
}

// NewGrouped is [New] for a table that is Grouped.
func NewGrouped(t Grouped, inbox string) *GroupedDriver { return &GroupedDriver{New(t, inbox), t} }

// AcquireAll implements driver.AllAcquirer.
func (d *GroupedDriver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	if err := driver.ValidateAll(claims); err != nil {
		return nil, err
	}
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	claims = slices.Clone(claims)
	n := len(claims)
	steps := make([]Step, n)
	for i := range claims {
		c := &claims[i]
		c.Owner, c.Value, c.ValueBelow = c.Owner.Clone(), bytes.Clone(c.Value), bytes.Clone(c.ValueBelow)
		steps[i] = Step{Name: c.Name, Token: c.Token, Place: true, HasEnd: true}
	}
	grants, visible := make([]driver.Grant, n), make([]bool, n)
	var refused error
	// The first half of the steps checks the claims, and grants names of expired holders
	// to their waiters. The table stores that even if a claim is refused. The second half
	// grants the claims.
	steps = slices.Concat(steps, steps)
	err := d.grouped.UpdateAll(ctx, steps, func(i int, e *Entry, now Instant) bool {
		if i < n {
			refused = e.Refuses(now, &claims[i])
			visible[i] = e.Visible
			return refused == nil
		}
		grants[i-n], refused = e.Acquire(now, &claims[i-n], d.inbox)
		if visible[i-n] {
			// The first step on the name has already signaled the marks.
			e.Visible = false
			e.Signals = slices.DeleteFunc(e.Signals, func(s Signal) bool { return s.Kind == signalChanged })
		}
		return refused == nil
	})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, err
	case err != nil:
		return nil, d.wrapErr(ctx, "acquire", claims[0].Name, err)
	case refused != nil:
		return nil, refused
	}
	return grants, nil
}
