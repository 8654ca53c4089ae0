package swap_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// windowClient is a client of a store whose clock is behind the time of day.
type windowClient struct {
	*valuesClient
	window  swap.Window
	swapped *locktable.Entry // the entry of the last swap
	last    swap.Window      // its window
}

func (s *windowClient) Time(context.Context) (swap.Window, error) { return s.window, nil }

func (s *windowClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.swapped, s.last = swaps[0].Entry, swaps[0].Window
	return s.valuesClient.Swap(ctx, swaps)
}

func TestALeaseLastsLongerByTheWindowAndItsFenceFollowsTheWallClock(t *testing.T) {
	now := time.Now()
	from := locktable.At(now)
	s := &windowClient{valuesClient: &valuesClient{newValues(func() time.Time { return now }, 0), "inbox"}}
	s.window = swap.Window{From: from, To: from.Add(300 * time.Millisecond), WallClock: from.Add(time.Hour)}
	d := newDriver(s)
	g, err := d.Acquire(t.Context(), tryClaim())
	noError(t, err)
	if want := s.window.To.Add(g.TTL); s.swapped.Holders[0].Expires != want {
		t.Errorf("the lease lasts until %v, want %v", s.swapped.Holders[0].Expires.Time(), want.Time())
	}
	if g.Fence < uint64(s.window.WallClock) {
		t.Errorf("the fence is %d, below the time of day %d", g.Fence, s.window.WallClock)
	}
}
