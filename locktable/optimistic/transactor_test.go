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

// transacting is a store that swaps values of one kind, and takes the steps of its
// transactions on others.
type transacting struct {
	*valuesClient
	locked *optimistic.Table
}

func (s *transacting) Transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	return s.locked.Update(ctx, steps, func(i int, e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
}

func (s *transacting) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	return s.locked.Read(ctx, name)
}

// An entry that is read without a lock may be about to change: a release that finds
// nothing there is for a transaction.
func TestAReleaseThatFindsNothingIsForATransaction(t *testing.T) {
	ctx := context.Background()
	before, after := newValues(time.Now, time.Minute), newValues(time.Now, time.Minute)
	deliver := func(driver.Signal) {}
	locked := optimistic.New(&valuesClient{after, "inbox"}, "inbox", deliver)
	table := optimistic.New(&transacting{&valuesClient{before, "inbox"}, locked}, "inbox", deliver)
	d, other := locktable.New(table, "inbox"), after.open()
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
	if err := d.Release(ctx, l); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Errorf("%v; want ErrNoSuchLease", err)
	}
}
