package swap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable/swap"
)

// delayingClient is a client of a store that can delay swaps, as a network does. A
// delayed swap returns an error, and takes effect when arrive is called.
type delayingClient struct {
	valuesClient
	delays  bool
	delayed []swap.Swap
}

func (*delayingClient) DelaysWrites() {}

func (l *delayingClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if l.delays {
		l.delayed = append(l.delayed, swaps...)
		return nil, context.DeadlineExceeded
	}
	return l.valuesClient.Swap(ctx, swaps)
}

// arrive runs the delayed swaps.
func (l *delayingClient) arrive() {
	for _, s := range l.delayed {
		l.swap(s)
	}
	l.delays, l.delayed = false, nil
}

// A release may arrive after its end, because the store's clock may stand still. If its
// client has claimed again by then, with the same token, the lease or the place stays,
// even if that claim changed nothing.
func TestADelayedReleaseEndsNoLeaseThatWasClaimedAgain(t *testing.T) {
	for what, tt := range map[string]struct {
		first     driver.Claim // the claim of another client
		secondTTL time.Duration
	}{
		"held":                     {secondTTL: time.Minute},
		"held, with a shorter TTL": {secondTTL: time.Second},
		"waiting":                  {secondTTL: time.Minute, first: tryClaim()},
	} {
		t.Run(what, func(t *testing.T) {
			start := time.Now()
			l := &delayingClient{valuesClient: valuesClient{newValues(func() time.Time { return start }, 0), "inbox"}}
			d := newDriver(l)
			if tt.first.Name != "" {
				acquire(t, d, tt.first, nil)
			}
			own, want := queuedClaim(), error(nil)
			if tt.first.Name != "" {
				want = driver.ErrHeld
			}
			acquire(t, d, own, want)

			l.delays = true
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Release(ctx, driver.LeaseRef{Name: own.Name, Token: own.Token, HasEnd: true}); err == nil {
				t.Fatal("the release succeeded")
			}
			l.delays = false
			own.TTL, own.QueueTTL = tt.secondTTL, tt.secondTTL
			acquire(t, d, own, want)
			l.arrive()

			e, err := d.Inspect(t.Context(), own.Name)
			noError(t, err)
			if tt.first.Name == "" && len(e.Holders) != 1 || tt.first.Name != "" && len(e.Waiters) != 1 {
				t.Errorf("the entry is %+v; want the claim in it", e)
			}
		})
	}
}

func acquire(t *testing.T, d driver.Driver, c driver.Claim, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := d.Acquire(ctx, c); !errors.Is(err, want) {
		t.Fatalf("Acquire: %v, want %v", err, want)
	}
}
