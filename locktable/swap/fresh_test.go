package swap_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// behind is a client of a store that reads many names as they were some time ago, as a
// replica has them, and one as it is now.
type behind struct {
	*valuesClient
	was  map[string]swap.Stored
	fail bool // the next swap fails, and its outcome is unknown
}

var errLost = errors.New("the answer was lost")

func (b *behind) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	if len(names) == 1 {
		return b.valuesClient.Load(ctx, names)
	}
	all := make([]swap.Stored, len(names))
	for i, name := range names {
		all[i] = b.was[name]
	}
	return all, nil
}

func (b *behind) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if b.fail {
		b.fail = false
		return nil, errLost
	}
	return b.valuesClient.Swap(ctx, swaps)
}

// Values of many names that were read at once do not prove that a lease is gone: they may
// be from before its grant.
func TestALeaseIsNotGoneForAnOldReadOfManyNames(t *testing.T) {
	v := newValues(time.Now, 50*time.Millisecond)
	b := &behind{valuesClient: &valuesClient{v, "inbox"}}
	d := locktable.New(swap.New(b, "inbox", func(driver.Signal) {}), "inbox")
	b.was = maps.Clone(v.stored)
	var leases []driver.LeaseRef
	for _, c := range exclusiveOn("a", "b", "c") {
		must(d.Acquire(t.Context(), c))(t)
		leases = append(leases, renewal(c, time.Minute)...)
	}
	b.fail = true // after which nothing is cached
	if _, err := d.Renew(t.Context(), leases); !errors.Is(err, errLost) {
		t.Fatalf("%v; want it to fail", err)
	}
	renewsAll(t, d, leases)
}
