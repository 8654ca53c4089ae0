package locktable

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Grouped is a table that can take steps of several names as one.
type Grouped interface {
	Table

	// UpdateAll is Update in one atomic step of all names. If f returns false, UpdateAll
	// skips the steps that are left, stores what f has done until then, and returns no
	// error. If the table cannot take these steps as one, UpdateAll changes nothing and
	// returns [errors.ErrUnsupported].
	UpdateAll(ctx context.Context, steps []Step, f func(i int, e *Entry, now Instant) bool) error
}

// GroupedDriver is a Driver over a table that is Grouped. It is a driver.AllAcquirer,
// too.
type GroupedDriver struct {
	*Driver
	grouped Grouped
}

// NewGrouped is [New] for a table that can take steps of several names as one.
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
		c.Owner, c.Value, c.Above = shown(c.Owner), bytes.Clone(c.Value), bytes.Clone(c.Above)
		steps[i] = Step{Name: c.Name, Token: c.Token, Place: true, OnTime: true}
	}
	grants, told := make([]driver.Grant, n), make([]bool, n)
	var refused error
	// The first n steps check the claims, and pass on names whose holders have expired.
	// The table stores that even if a claim is refused. The other steps grant.
	steps = slices.Concat(steps, steps)
	err := d.grouped.UpdateAll(ctx, steps, func(i int, e *Entry, now Instant) bool {
		if i < n {
			refused = e.Refuses(now, &claims[i])
			told[i] = e.News
			return refused == nil
		}
		grants[i-n], refused = e.Acquire(now, &claims[i-n], d.inbox)
		if told[i-n] {
			// The client reads the entry after both steps, and needs one signal.
			e.News = false
			e.Signals = slices.DeleteFunc(e.Signals, func(s Signal) bool { return IsChange(s.Signal) })
		}
		return refused == nil
	})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, err
	case err != nil:
		return nil, d.trouble(ctx, "acquire", claims[0].Name, err)
	case refused != nil:
		return nil, refused
	}
	return grants, nil
}
