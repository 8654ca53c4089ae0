package swap_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable/swap"
)

// staleClient is a client of a store that reads several names from an old state, like a
// replica, and a single name from the current one.
type staleClient struct {
	*valuesClient
	old  map[string]swap.Stored
	fail bool // the next swap fails, and its outcome is unknown
}

var errLost = errors.New("the answer was lost")

func (b *staleClient) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	if len(names) == 1 {
		return b.valuesClient.Load(ctx, names)
	}
	all := make([]swap.Stored, len(names))
	for i, name := range names {
		all[i] = b.old[name]
	}
	return all, nil
}

func (b *staleClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if b.fail {
		b.fail = false
		return nil, errLost
	}
	return b.valuesClient.Swap(ctx, swaps)
}

// Values of several names that were loaded together do not prove that a lease has ended:
// they may be older than its grant.
func TestAnOldLoadOfManyNamesDoesNotEndALease(t *testing.T) {
	v := newValues(time.Now, 50*time.Millisecond)
	b := &staleClient{valuesClient: &valuesClient{v, "inbox"}}
	d := newDriver(b)
	b.old = maps.Clone(v.stored)
	var leases []driver.LeaseRef
	for _, c := range exclusiveClaims("a", "b", "c") {
		must(d.Acquire(t.Context(), c))(t)
		leases = append(leases, renewal(c, time.Minute)...)
	}
	b.fail = true // after that, no value is cached
	if _, err := d.Renew(t.Context(), leases); !errors.Is(err, errLost) {
		t.Fatalf("Renew: %v; want it to fail", err)
	}
	renewAll(t, d, leases)
}
