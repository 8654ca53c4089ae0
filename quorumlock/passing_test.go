package quorumlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// When a release grants, nodes whose clocks differ use different fences. The waiter gets
// one fence, one round trip after the signals, and a later answer has the same one.
func TestAHandOverHasOneFence(t *testing.T) {
	const rtt = 10 * time.Millisecond
	for name, skews := range map[string][]time.Duration{
		"Microseconds": {0, 3 * time.Microsecond, 7 * time.Microsecond},
		"Milliseconds": {200 * time.Millisecond, 0, -300 * time.Millisecond},
		"Hours":        {0, -time.Hour, time.Hour, 0, 2 * time.Hour},
	} {
		for _, permits := range []int{driver.Exclusive, 1} {
			inBubble(t, name, func(t *testing.T) {
				c := newCluster(len(skews))
				for i, skew := range skews {
					c[i].skew = skew
				}
				one, _ := c.client(t, rtt)
				two, lines := c.client(t, rtt)
				signals := servertest.Listen(t, two)
				holder, waiter := mutex("jobs"), queued(mutex("jobs"))
				if waiter.Weight = permits; permits == 1 {
					waiter.Limit = 3
				}
				g := gets(t, one, holder)
				refused(t, two, waiter)
				time.Sleep(time.Second)
				resetCalls(lines)
				noError(t, one.Release(t.Context(), lease(holder)))
				shown, err := one.Inspect(t.Context(), "jobs")
				noError(t, err)
				signal := <-signals
				time.Sleep(time.Second)
				if len(signals) > 0 || signal.Kind != driver.SignalGranted || signal.Fence <= g.Fence || signal.Fence != shown.Holders[0].Fence {
					t.Fatalf("signal %+v and %d more; Inspect returns the fence %d", signal, len(signals), shown.Holders[0].Fence)
				}
				for i, l := range lines {
					if calls := l.calls.Load(); permits == driver.Exclusive && calls > 1 {
						t.Errorf("node %d got %d requests of the waiter, want at most 1, which raises its fence", i+1, calls)
					}
				}
				for range 3 {
					if again := gets(t, two, waiter); again.Fence != signal.Fence {
						t.Errorf("a repeated claim has the fence %d, the signal %d", again.Fence, signal.Fence)
					}
				}
				releases(t, two, waiter)
			})
		}
	}
}

// A waiter does not wait for a node that is down. It retries when fewer nodes than a
// majority have granted.
func TestAHandOverWithoutAMinority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[1].skew = time.Millisecond
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].down.Store(true)
		refused(t, two, waiter)
		began := time.Now()
		releases(t, one, holder)
		signal := <-signals
		if took := time.Since(began); took > 5*time.Millisecond || signal.Kind != driver.SignalGranted {
			t.Errorf("signal %+v after %v", signal, took)
		}
		if again := gets(t, two, waiter); again.Fence != signal.Fence {
			t.Errorf("a repeated claim has the fence %d, the signal %d", again.Fence, signal.Fence)
		}
	})
}

// The signals of a grant, and an attempt that is under way when they arrive, have one
// fence.
func TestAnAttemptMeetsTheSignalsOfItsGrant(t *testing.T) {
	for delay := range 40 {
		bubble.Test(t, func(t *testing.T) {
			c := newCluster(3)
			c[1].skew, c[2].skew = time.Millisecond, 2*time.Millisecond
			one, ones := c.client(t, 10*time.Millisecond, 12*time.Millisecond, 14*time.Millisecond)
			two, _ := c.client(t, 15*time.Millisecond, 11*time.Millisecond, 7*time.Millisecond)
			// the release reaches one node at another time
			ones[delay%3].requestDelay.Store(int64(time.Duration(delay) * time.Millisecond / 2))
			fences := map[uint64]int{}
			signals := servertest.Listen(t, two)
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			gets(t, one, holder)
			refused(t, two, waiter)
			time.Sleep(time.Second)
			var all sync.WaitGroup
			all.Go(func() { releases(t, one, holder) })
			all.Go(func() {
				for range 4 {
					time.Sleep(time.Duration(delay) * time.Millisecond / 4)
					if g, err := two.Acquire(t.Context(), waiter); err == nil {
						fences[g.Fence]++
					}
				}
			})
			all.Wait()
			time.Sleep(time.Second)
			granted, _ := takeAll(signals)
			for _, s := range granted {
				fences[s.Fence]++
			}
			if len(fences) != 1 {
				t.Errorf("%d: the fences %d for one grant", delay, fences)
			}
		})
	}
}

// Many shared claims at once do not keep each other from agreeing on fences, although the
// clocks are far apart and every grant needs an agreement.
func TestACrowdOfReadersIsGrantedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[1].skew, c[2].skew = time.Hour, -time.Hour
		var clients []driver.Driver
		for range 4 {
			d, lines := c.client(t, time.Millisecond)
			for _, l := range lines {
				l.jitter.Store(int64(time.Millisecond))
			}
			clients = append(clients, d)
		}
		var mu sync.Mutex
		seen := map[uint64]bool{}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				x := mutex("book")
				x.Weight = 1
				g, err := clients[i%4].Acquire(t.Context(), x)
				if err != nil {
					t.Errorf("a reader: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if seen[g.Fence] {
					t.Errorf("two grants have the fence %d", g.Fence)
				}
				seen[g.Fence] = true
			})
		}
		all.Wait()
	})
}

// Close of the waiter's client ends an agreement that is under way.
func TestCloseInTheMiddleOfAHandOver(t *testing.T) {
	for delay := range 30 {
		bubble.Test(t, func(t *testing.T) {
			c := newCluster(3)
			c[1].skew = time.Millisecond
			one, _ := c.client(t, 10*time.Millisecond)
			two, _ := c.client(t, 10*time.Millisecond)
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			gets(t, one, holder)
			refused(t, two, waiter)
			go func() {
				time.Sleep(time.Duration(delay) * time.Millisecond)
				noError(t, two.Close())
			}()
			releases(t, one, holder)
			time.Sleep(time.Second)
		})
	}
}
