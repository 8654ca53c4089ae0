package quorumlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Nodes whose clocks differ pass a name on with a fence each. The waiter gets one fence,
// in a round trip from the signals, and a later answer has the same one.
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
				heard := servertest.Listen(t, two)
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
				said := <-heard
				time.Sleep(time.Second)
				if len(heard) > 0 || said.Kind != driver.SignalGranted || said.Fence <= g.Fence || said.Fence != shown.Holders[0].Fence {
					t.Fatalf("heard %+v and %d signals more; Entry has the fence %d", said, len(heard), shown.Holders[0].Fence)
				}
				for i, l := range lines {
					if calls := l.calls.Load(); permits == driver.Exclusive && calls > 1 {
						t.Errorf("node %d got %d requests of the waiter, want 1 to raise its fence, or none", i+1, calls)
					}
				}
				for range 3 {
					if again := gets(t, two, waiter); again.Fence != said.Fence {
						t.Errorf("asked again it is the fence %d, and %d was said", again.Fence, said.Fence)
					}
				}
				releases(t, two, waiter)
			})
		}
	}
}

// A node that is down is not waited for. And a waiter asks again when less than a
// majority has passed the name on.
func TestAHandOverWithoutAMinority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[1].skew = time.Millisecond
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		heard := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].down.Store(true)
		refused(t, two, waiter)
		began := time.Now()
		releases(t, one, holder)
		said := <-heard
		if took := time.Since(began); took > 5*time.Millisecond || said.Kind != driver.SignalGranted {
			t.Errorf("heard %+v after %v", said, took)
		}
		if again := gets(t, two, waiter); again.Fence != said.Fence {
			t.Errorf("asked again it is the fence %d, and %d was said", again.Fence, said.Fence)
		}
	})
}

// Signals, and an attempt that is under way when they come, make the nodes agree once, on
// one fence.
func TestAnAttemptMeetsTheSignalsOfItsGrant(t *testing.T) {
	for late := range 40 {
		bubble.Test(t, func(t *testing.T) {
			c := newCluster(3)
			c[1].skew, c[2].skew = time.Millisecond, 2*time.Millisecond
			one, ones := c.client(t, 10*time.Millisecond, 12*time.Millisecond, 14*time.Millisecond)
			two, _ := c.client(t, 15*time.Millisecond, 11*time.Millisecond, 7*time.Millisecond)
			// the release comes there when it comes
			ones[late%3].requestDelay.Store(int64(time.Duration(late) * time.Millisecond / 2))
			var mu sync.Mutex
			fences := map[uint64]int{}
			two.Listen(func(s driver.Signal) {
				if s.Kind == driver.SignalGranted {
					mu.Lock()
					defer mu.Unlock()
					fences[s.Fence]++
				}
			})
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			gets(t, one, holder)
			refused(t, two, waiter)
			time.Sleep(time.Second)
			var all sync.WaitGroup
			all.Go(func() { releases(t, one, holder) })
			all.Go(func() {
				for range 4 {
					time.Sleep(time.Duration(late) * time.Millisecond / 4)
					if g, err := two.Acquire(t.Context(), waiter); err == nil {
						mu.Lock()
						fences[g.Fence]++
						mu.Unlock()
					}
				}
			})
			all.Wait()
			time.Sleep(time.Second)
			if len(fences) != 1 {
				t.Errorf("%d: the fences %d for one grant", late, fences)
			}
		})
	}
}

// Many claims that may be granted beside each other at once do not keep each other from
// agreeing, although every grant needs an agreement of the nodes: their clocks are far
// apart.
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
					t.Errorf("the fence %d twice", g.Fence)
				}
				seen[g.Fence] = true
			})
		}
		all.Wait()
	})
}

// A hand-over that meets the Close of its waiter's client ends with it.
func TestCloseInTheMiddleOfAHandOver(t *testing.T) {
	for late := range 30 {
		bubble.Test(t, func(t *testing.T) {
			c := newCluster(3)
			c[1].skew = time.Millisecond
			one, _ := c.client(t, 10*time.Millisecond)
			two, _ := c.client(t, 10*time.Millisecond)
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			gets(t, one, holder)
			refused(t, two, waiter)
			go func() {
				time.Sleep(time.Duration(late) * time.Millisecond)
				noError(t, two.Close())
			}()
			releases(t, one, holder)
			time.Sleep(time.Second)
		})
	}
}
