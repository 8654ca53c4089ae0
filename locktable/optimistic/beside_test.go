package optimistic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// What is read without a lock may be about to change: a release that finds nothing there
// is for the table that locks.
func TestAReleaseThatFindsNothingIsForTheTableThatLocks(t *testing.T) {
	ctx := context.Background()
	before, after := newValues(time.Now, time.Minute), newValues(time.Now, time.Minute)
	deliver := func(driver.Signal) {}
	fast := optimistic.New(&valuesClient{before, "inbox"}, "inbox", deliver)
	slow := optimistic.New(&valuesClient{after, "inbox"}, "inbox", deliver)
	d, other := locktable.New(fast.Beside(slow), "inbox"), after.open()
	c := driver.Claim{Name: "n", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute}
	if _, err := other.Acquire(ctx, c); err != nil {
		t.Fatal(err)
	}
	l := driver.LeaseRef{Name: c.Name, Token: c.Token}
	if err := d.Release(ctx, l); err != nil {
		t.Errorf("%v; want it released", err)
	}
	if e, err := other.Inspect(ctx, c.Name); err != nil || len(e.Holders) > 0 {
		t.Errorf("%+v, %v; want nobody to hold it", e, err)
	}
	if err := d.Release(ctx, l); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("%v; want ErrNotHeld", err)
	}
}
