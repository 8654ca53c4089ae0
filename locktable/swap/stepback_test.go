package swap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// A released lease with a minimum hold is never renewed, so no claim pauses for it.
func TestAClaimDoesNotPauseForAReleasedLease(t *testing.T) {
	withContention(t, func(t *testing.T, held driver.Claim, _ *farValues, d, other *locktable.Driver) {
		noError(t, d.Release(t.Context(), driver.LeaseRef{Name: held.Name, Token: held.Token, MinHold: 20 * time.Second}))
		began := time.Now()
		if _, err := other.Acquire(t.Context(), queuedClaim()); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*trip {
			t.Errorf("it queued in %v; want the time of a load and a swap", took)
		}
	})
}

// failedSwapTimes returns the times at which the swaps of a claim arrive if all fail.
func failedSwapTimes(t *testing.T, seed uint64, within time.Duration) (arrivals []time.Time, end time.Time) {
	t.Helper()
	withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, _ *locktable.Driver) {
		defer backoff.Seed(seed)()
		s.onArrival = func(swap.Swap) {
			arrivals = append(arrivals, time.Now())
			s.touch(held.Name)
		}
		end = time.Now().Add(within)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		defer cancel()
		if _, err := d.Acquire(ctx, queuedClaim()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		time.Sleep(trip) // the abandoned request arrives
	})
	return arrivals, end
}

// After its first failed swap a claim pauses for two round trips, and then for longer,
// but at most for a quarter of the time left.
func TestTheClaimsPausesGrowWithItsFailedSwaps(t *testing.T) {
	const fast = 2 * trip // from one swap to the next without a pause: an answer and a load
	for seed := range uint64(20) {
		arrivals, end := failedSwapTimes(t, seed, 40*trip)
		for i := 1; i+1 < len(arrivals); i++ { // the first swap is from an outdated value
			pause, left := arrivals[i+1].Sub(arrivals[i])-fast, end.Sub(arrivals[i])-oneWay
			most := min(3*trip<<(i-1), 96*trip, left/4)
			if pause < 0 || pause > most {
				t.Errorf("seed %d: after failed swap %d the pause is %v, and %v are left; want %v at most", seed, i, pause, left, most)
			}
		}
		if len(arrivals) < 6 {
			t.Errorf("seed %d: %d swaps; want 6 or more", seed, len(arrivals))
		}
	}
}

// A waiter gives up its place soon, however long the queue is, and although its first
// swaps fail. So a client with such a waiter can close.
func TestAWaiterFarBackGivesUpItsPlaceSoon(t *testing.T) {
	withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, _ *locktable.Driver) {
		var last driver.Claim
		for range 200 {
			last = queuedClaim()
			if _, err := d.Acquire(t.Context(), last); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
		failuresLeft := 6
		s.onArrival = func(swap.Swap) {
			if failuresLeft--; failuresLeft >= 0 {
				s.touch(held.Name)
			}
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		noError(t, d.Release(ctx, driver.LeaseRef{Name: last.Name, Token: last.Token}))
		if took := time.Since(began); took > time.Second || failuresLeft >= 0 {
			t.Errorf("it took %v; want a second or less, with 6 failed swaps (%d are left)", took, failuresLeft)
		}
	})
}

// A late step is repeated after growing pauses, because the server may be busy. A step
// whose swap failed is repeated after a part of a round trip.
func TestALateStepPausesLongerThanAStepWhoseSwapFailed(t *testing.T) {
	for _, late := range []bool{false, true} {
		withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, _ *locktable.Driver) {
			width := s.width
			var arrivals []time.Time
			s.onArrival = func(swap.Swap) {
				switch arrivals = append(arrivals, time.Now()); {
				case len(arrivals) == 12:
					s.width = width
				case late:
					s.width = 0
				default:
					s.touch(held.Name)
				}
			}
			if late {
				s.width = 0
			}
			if answers, err := d.Renew(t.Context(), renewal(held, time.Hour)); err != nil || answers[0] != nil {
				t.Fatal(answers, err)
			}
			last := arrivals[11].Sub(arrivals[10]) - 2*trip
			if long := last >= 16*time.Millisecond; long != late || last < 0 {
				t.Errorf("late: %t; the last pause is %v", late, last)
			}
		})
	}
}

// If a faulty store refuses each swap, the error after the timeout says why.
func TestAStepWhoseSwapsAllFailSaysWhy(t *testing.T) {
	for want, swapped := range map[string]swap.Swapped{
		"Load returned that version again": {},
		"outside of the swap's window":     {OutsideWindow: true},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := refusingClient{&valuesClient{newValues(time.Now, time.Second), "inbox"}, swapped}
			d := newDriver(store)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := d.Acquire(ctx, queuedClaim())
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("Acquire: %v; want the end of ctx, and %q", err, want)
			}
		})
	}
}

// refusingClient is a client whose swaps all fail.
type refusingClient struct {
	*valuesClient
	swapped swap.Swapped
}

func (r refusingClient) Swap(_ context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	time.Sleep(time.Millisecond)
	return slices.Repeat([]swap.Swapped{r.swapped}, len(swaps)), nil
}

// The end of a step is a lower bound on the store's clock, which may be slower by a
// thousandth.
func TestAWindowEndsBeforeTheStep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &windowClient{valuesClient: &valuesClient{newValues(time.Now, 0), "inbox"}}
		from := locktable.At(time.Now())
		s.window = swap.Window{From: from, To: from.Add(5 * time.Second)}
		d := newDriver(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(d.Acquire(ctx, tryClaim()))(t)
		if got, want := from.Until(s.last.To), 999*time.Millisecond; got != want {
			t.Errorf("the window ends after %v; want %v", got, want)
		}
	})
}
