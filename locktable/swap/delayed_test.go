package swap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// lingering is a client of a store that may hold a swap up, as a network does. It is
// given up then, and arrives later.
type lingering struct {
	valuesClient
	hold bool
	late []swap.Swap
}

func (*lingering) DelaysWrites() {}

func (l *lingering) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if l.hold {
		l.late = append(l.late, swaps...)
		return nil, context.DeadlineExceeded
	}
	return l.valuesClient.Swap(ctx, swaps)
}

// arrive lets all take effect that were held up.
func (l *lingering) arrive() {
	for _, s := range l.late {
		l.swap(s)
	}
	l.hold, l.late = false, nil
}

// A release that has an end may arrive after it, because the store's clock may stand
// still. If its client has claimed again by then, with the same token, the lease stays,
// even if that claim found nothing to change.
func TestAReleaseThatLingersEndsNoLeaseThatWasClaimedAgain(t *testing.T) {
	for what, tt := range map[string]struct {
		first driver.Claim // of another one
		again time.Duration
	}{
		"held":                        {again: time.Minute},
		"held, and asked for shorter": {again: time.Second},
		"waiting":                     {again: time.Minute, first: exclusive(false)},
	} {
		t.Run(what, func(t *testing.T) {
			stands := time.Now()
			l := &lingering{valuesClient: valuesClient{newValues(func() time.Time { return stands }, 0), "inbox"}}
			d := locktable.New(swap.New(l, "inbox", func(driver.Signal) {}), "inbox")
			if tt.first.Name != "" {
				acquire(t, d, tt.first, nil)
			}
			own, want := exclusive(true), error(nil)
			if tt.first.Name != "" {
				want = driver.ErrHeld
			}
			acquire(t, d, own, want)

			l.hold = true
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Release(ctx, driver.LeaseRef{Name: own.Name, Token: own.Token, HasEnd: true}); err == nil {
				t.Fatal("released")
			}
			l.hold = false
			own.TTL, own.QueueTTL = tt.again, tt.again
			acquire(t, d, own, want)
			l.arrive()

			e, err := d.Inspect(t.Context(), own.Name)
			noError(t, err)
			if tt.first.Name == "" && len(e.Holders) != 1 || tt.first.Name != "" && len(e.Waiters) != 1 {
				t.Errorf("%+v; want it there still", e)
			}
		})
	}
}

func acquire(t *testing.T, d driver.Driver, c driver.Claim, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := d.Acquire(ctx, c); !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}
