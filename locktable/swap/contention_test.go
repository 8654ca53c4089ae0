package swap_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// oneWay is the time that a message takes in the tests of contention, and trip the round
// trip.
const (
	oneWay = 5 * time.Millisecond
	trip   = 2 * oneWay
)

func queuedClaim() driver.Claim {
	return driver.Claim{
		Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited,
		TTL: time.Minute, QueueTTL: time.Minute, Queue: true,
	}
}

func tryClaim() driver.Claim { c := queuedClaim(); c.Queue = false; return c }

func renewal(c driver.Claim, ttl time.Duration) []driver.LeaseRef {
	return []driver.LeaseRef{{Name: c.Name, Token: c.Token, TTL: ttl}}
}

// withContention calls f with a name that the first of two clients holds. Messages of
// both take oneWay.
func withContention(t *testing.T, f func(t *testing.T, held driver.Claim, s *farValues, d, other *locktable.Driver)) {
	bubble.Test(t, func(t *testing.T) {
		v := newValues(time.Now, 50*time.Millisecond)
		n := newNetwork(oneWay, oneWay, 1)
		d, s := v.openFar("one", n)
		other, _ := v.openFar("other", n)
		held := tryClaim()
		must(d.Acquire(t.Context(), held))(t)
		f(t, held, s, d, other)
	})
}

// A waiting claim whose swaps fail retries after longer and longer pauses. A renewal
// retries at once.
func TestAClaimPausesAfterFailedSwapsAndARenewalDoesNot(t *testing.T) {
	for _, what := range []string{"claim", "renewal"} {
		t.Run(what, func(t *testing.T) {
			withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, _ *locktable.Driver) {
				var arrivals []time.Time
				s.onArrival = func(swap.Swap) {
					if arrivals = append(arrivals, time.Now()); len(arrivals) <= 4 {
						s.touch(held.Name)
					}
				}
				if what == "claim" {
					if _, err := d.Acquire(t.Context(), queuedClaim()); !errors.Is(err, driver.ErrHeld) {
						t.Fatal(err)
					}
				} else if answers, err := d.Renew(t.Context(), renewal(held, time.Hour)); err != nil || answers[0] != nil {
					t.Fatal(answers, err)
				}
				for i := 1; i < len(arrivals); i++ {
					sincePrevious := arrivals[i].Sub(arrivals[i-1])
					wantPause := what == "claim" && i > 1 // the first swap may be from an outdated value
					if got := sincePrevious > 2*trip; got != wantPause {
						t.Errorf("swap %d arrived %v after the previous one", i+1, sincePrevious)
					}
				}
				if len(arrivals) != 5 {
					t.Errorf("%d swaps; want 5", len(arrivals))
				}
			})
		})
	}
}

// A waiting claim pauses if the holder is late with its renewal. It goes on after the
// renewal, or a little later, because the holder may be dead.
func TestAClaimPausesForALateHolder(t *testing.T) {
	queue := func(t *testing.T, d *locktable.Driver) (took time.Duration) {
		t.Helper()
		began := time.Now()
		if _, err := d.Acquire(t.Context(), queuedClaim()); !errors.Is(err, driver.ErrHeld) {
			t.Error(err)
		}
		return time.Since(began)
	}
	t.Run("NotIfItIsInTime", func(t *testing.T) {
		withContention(t, func(t *testing.T, held driver.Claim, _ *farValues, _, other *locktable.Driver) {
			time.Sleep(held.TTL / 3)
			if took := queue(t, other); took != 2*trip {
				t.Errorf("it queued in %v; want the time of a load and a swap", took)
			}
		})
	})
	t.Run("UntilItHasRenewed", func(t *testing.T) {
		withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, other *locktable.Driver) {
			time.Sleep(held.TTL * 2 / 3)
			var all sync.WaitGroup
			all.Go(func() {
				if took := queue(t, other); took > 6*trip {
					t.Errorf("it queued in %v", took)
				}
			})
			time.Sleep(trip + trip/10) // a swap of the claim, begun at once, would arrive before the renewal
			if answers, err := d.Renew(t.Context(), renewal(held, time.Minute)); err != nil || answers[0] != nil {
				t.Error(answers, err)
			}
			all.Wait()
			if failed := s.failed.Load(); failed > 0 {
				t.Errorf("%d swaps of the renewal failed", failed)
			}
		})
	})
	t.Run("NotForLongIfItIsDead", func(t *testing.T) {
		withContention(t, func(t *testing.T, held driver.Claim, _ *farValues, _, other *locktable.Driver) {
			time.Sleep(held.TTL * 2 / 3)
			if took := queue(t, other); took < 4*trip || took > 15*trip {
				t.Errorf("it queued in %v; want some round trips of %v", took, trip)
			}
		})
	})
}

// A renewal does not wait for the claims of its own process.
func TestARenewalOvertakesTheClaimsOfItsProcess(t *testing.T) {
	withContention(t, func(t *testing.T, held driver.Claim, s *farValues, d, _ *locktable.Driver) {
		var order []int // the length of the queue in each swap
		s.onArrival = func(one swap.Swap) { order = append(order, len(one.Entry.Queue)) }
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := d.Acquire(t.Context(), queuedClaim()); !errors.Is(err, driver.ErrHeld) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if answers, err := d.Renew(t.Context(), renewal(held, time.Hour)); err != nil || answers[0] != nil {
			t.Error(answers, err)
		}
		all.Wait()
		if want := []int{1, 1, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("the swaps have queues of %v; want %v: the second is the renewal", order, want)
		}
	})
}

// A lock and its release cost about as many requests in a crowd as among a few clients,
// although the crowd joins at once, and gives up at once in the end. Few swaps fail.
func TestACycleInACrowdCostsFewRequests(t *testing.T) {
	for processes, most := range map[int]struct{ requests, failed float64 }{8: {3.3, 0.1}, 64: {4.5, 0.8}} {
		bubble.Test(t, func(t *testing.T) {
			r, err := contention{processes: processes, trip: 500 * time.Microsecond, ttl: 30 * time.Second, hold: 2 * time.Millisecond, lasts: 3 * time.Second, seed: 1}.run()
			noError(t, err)
			cycles := float64(r.granted.Load())
			if requests, failed := float64(r.loads+r.swaps)/cycles, float64(r.failed)/cycles; requests > most.requests || failed > most.failed {
				t.Errorf("%d processes: %.2f requests a cycle, %.2f of them in vain; want %v or fewer", processes, requests, failed, most)
			}
		})
	}
}

// BenchmarkLossOnOneName measures, in virtual time, the lost leases and the hand-overs of
// one name, by the number of processes and of round trips of 20 ms in a TTL. Each lease
// is held for three TTLs, or released at once.
func BenchmarkLossOnOneName(b *testing.B) {
	for _, processes := range []int{2, 4, 8, 16, 64} {
		for _, trips := range []int{25, 50, 60, 100, 200, 400} {
			b.Run(fmt.Sprintf("processes=%d/ttl=%d", processes, trips), func(b *testing.B) {
				ttl := time.Duration(trips) * 20 * time.Millisecond
				for b.Loop() {
					held := contention{processes: processes, trip: 20 * time.Millisecond, ttl: ttl, hold: 3 * ttl, lasts: 100 * ttl, seed: 1}
					handedOver := contention{processes: processes, trip: 20 * time.Millisecond, ttl: ttl, hold: 1, lasts: 20 * ttl, seed: 1}
					var l, h *results
					bubble.Test(&testing.T{}, func(*testing.T) { l, _ = held.run() })
					bubble.Test(&testing.T{}, func(*testing.T) { h, _ = handedOver.run() })
					b.ReportMetric(float64(l.lost.Load())/float64(l.granted.Load())*100, "lost/100")
					b.ReportMetric(float64(h.granted.Load())/float64(20*trips), "leases/trip")
					b.ReportMetric(float64(h.swaps)/float64(h.granted.Load()), "swaps/lease")
				}
			})
		}
	}
}
