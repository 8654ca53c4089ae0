package redis_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func lock(t *testing.T, m *pawl.Mutex) *pawl.Lease {
	t.Helper()
	lease, err := m.Lock(t.Context())
	noError(t, err)
	return lease
}

func isHeld(t *testing.T, m *pawl.Mutex) {
	t.Helper()
	if _, err := m.TryLock(t.Context()); !errors.Is(err, pawl.ErrHeld) {
		t.Fatalf("TryLock: %v; want it held", err)
	}
}

func released(t *testing.T, l *pawl.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func rises(t *testing.T, first, second *pawl.Lease) {
	t.Helper()
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
}

// However long the function of a key runs, the server remembers the key for a day after
// its end.
func TestAKeyIsDoneAfterAFunctionThatRanForADay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tick, one, two := pawl.TimeKey(time.Now()), w.client(nil), w.client(nil)
		for _, c := range []*pawl.Client{one, two} {
			ran, err := c.Once("report", pawl.WithTTL(2*time.Hour)).Do(t.Context(), tick, func(context.Context) error {
				time.Sleep(26 * time.Hour)
				return nil
			})
			if ran != (c == one) || err != nil {
				t.Errorf("%v, %v", ran, err)
			}
			time.Sleep(23 * time.Hour)
		}
	})
}

func TestAServerThatIsBackWithinTheTermCostsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		granted := make(chan *pawl.Lease)
		go func() { granted <- lock(t, two.Mutex("job")) }()
		for range 7 { // at any time between two renewals
			time.Sleep(17 * time.Second)
			w.crash()
			time.Sleep(5 * time.Second)
			w.restart()
			noError(t, first.Err())
		}
		time.Sleep(time.Minute)
		released(t, first)
		second := <-granted
		rises(t, first, second)
		released(t, second)
	})
}

func TestAServerThatIsAwayForLongerIsALossThatIsToldInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		time.Sleep(time.Minute)
		w.crash()
		<-first.Done()
		if lost, ok := errors.AsType[*pawl.LostError](first.Err()); !ok || lost.Reason != pawl.ReasonUnreachable {
			t.Errorf("%v; want it unreachable", first.Err())
		}
		w.restart()
		isHeld(t, two.Mutex("job")) // still: the holder learns of it first
		second := lock(t, two.Mutex("job"))
		rises(t, first, second)
		released(t, second)
	})
}

// Then a lease lasts longer in the server, never shorter. The next fence does not come
// from the clock.
func TestTheServersClockJumpsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		w.jump(-time.Hour)
		isHeld(t, two.Mutex("job"))
		time.Sleep(5 * time.Minute)
		if err := first.Err(); err != nil {
			t.Error(err)
		}
		isHeld(t, two.Mutex("job"))
		released(t, first)
		second := lock(t, two.Mutex("job"))
		rises(t, first, second)
		released(t, second)
	})
}

// Then leases end early. The holder learns of it at its next renewal. Before that, a
// guard refuses its fence.
func TestTheServersClockJumpsForward(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		w.jump(time.Hour)
		second := lock(t, two.Mutex("job"))
		rises(t, first, second)
		time.Sleep(15 * time.Second)
		if err := first.Err(); !errors.Is(err, pawl.ErrLost) {
			t.Errorf("%v; want it lost", err)
		}
		if err := second.Err(); err != nil {
			t.Error(err)
		}
		_ = first.Release(t.Context())
		isHeld(t, one.Mutex("job"))
		w.jump(-time.Hour)
		time.Sleep(time.Minute)
		released(t, second)
		third := lock(t, one.Mutex("job"))
		rises(t, second, third)
		released(t, third)
	})
}

// Several processes use a server that is down for up to two terms, and whose clock
// sometimes runs back. No two ever work at the same time, fences rise, and none starves.
func TestNeverTwoHoldersWhateverTheServerDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(rand.N(3 * time.Minute))
				w.crash()
				time.Sleep(rand.N(time.Minute))
				w.jump(-rand.N(10 * time.Second))
				w.restart()
			}
		})
		var mu sync.Mutex // protects all below
		var inside int
		var last uint64
		turns := make([]int, 3)
		for i := range turns {
			locks := w.client(&pawl.Options{RetryFor: time.Hour, QueueTTL: 20 * time.Second})
			all.Go(func() {
				for {
					lease, err := locks.Mutex("job").Lock(ctx)
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("Lock: %v", err)
						}
						return
					}
					mu.Lock()
					if inside++; inside > 1 {
						t.Error("VIOLATION: two at once")
					}
					if lease.Fence() <= last {
						t.Errorf("fence %d after %d", lease.Fence(), last)
					}
					last = lease.Fence()
					turns[i]++
					mu.Unlock()
					select {
					case <-lease.Done():
					case <-time.After(rand.N(time.Minute)):
					}
					mu.Lock()
					inside--
					mu.Unlock()
					_ = lease.Release(ctx)
				}
			})
		}
		all.Wait()
		t.Logf("turns: %d", turns)
		for _, n := range turns {
			if n == 0 {
				t.Errorf("turns: %d; want some for each", turns)
			}
		}
	})
}
