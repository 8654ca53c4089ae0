package quorumlock_test

import (
	"context"
	"errors"
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
				servers := newCluster(len(skews))
				for i, skew := range skews {
					servers[i].skew = skew
				}
				one, _ := servers.client(t, rtt)
				two, lines := servers.client(t, rtt)
				signals := servertest.Listen(t, two)
				holder, waiter := mutex("jobs"), queued(mutex("jobs"))
				if waiter.Weight = permits; permits == 1 {
					waiter.Limit = 3
				}
				g := mustAcquire(t, one, holder)
				wantHeld(t, two, waiter)
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
					if again := mustAcquire(t, two, waiter); again.Fence != signal.Fence {
						t.Errorf("a repeated claim has the fence %d, the signal %d", again.Fence, signal.Fence)
					}
				}
				mustRelease(t, two, waiter)
			})
		}
	}
}

// A waiter does not wait for a node that is down. It retries when fewer nodes than a
// majority have granted.
func TestAHandOverDoesNotWaitForADeadMinority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[1].skew = time.Millisecond
		one, _ := servers.client(t, time.Millisecond)
		two, lines := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		lines[0].down.Store(true)
		wantHeld(t, two, waiter)
		began := time.Now()
		mustRelease(t, one, holder)
		signal := <-signals
		if took := time.Since(began); took > 5*time.Millisecond || signal.Kind != driver.SignalGranted {
			t.Errorf("signal %+v after %v", signal, took)
		}
		if again := mustAcquire(t, two, waiter); again.Fence != signal.Fence {
			t.Errorf("a repeated claim has the fence %d, the signal %d", again.Fence, signal.Fence)
		}
	})
}

// The signals of a grant, and an attempt that is under way when they arrive, have one
// fence.
func TestAnAttemptAndTheSignalsOfItsGrantHaveOneFence(t *testing.T) {
	for delay := range 40 {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			servers[1].skew, servers[2].skew = time.Millisecond, 2*time.Millisecond
			one, oneLines := servers.client(t, 10*time.Millisecond, 12*time.Millisecond, 14*time.Millisecond)
			two, _ := servers.client(t, 15*time.Millisecond, 11*time.Millisecond, 7*time.Millisecond)
			// the release reaches one node at another time
			oneLines[delay%3].requestDelay.Store(int64(time.Duration(delay) * time.Millisecond / 2))
			fences := map[uint64]int{}
			signals := servertest.Listen(t, two)
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			mustAcquire(t, one, holder)
			wantHeld(t, two, waiter)
			time.Sleep(time.Second)
			var all sync.WaitGroup
			all.Go(func() { mustRelease(t, one, holder) })
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
		servers := newCluster(3)
		servers[1].skew, servers[2].skew = time.Hour, -time.Hour
		var clients []driver.Driver
		for range 4 {
			d, lines := servers.client(t, time.Millisecond)
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
				claim := mutex("book")
				claim.Weight = 1
				g, err := clients[i%4].Acquire(t.Context(), claim)
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
func TestCloseEndsAHandOverThatIsUnderWay(t *testing.T) {
	for delay := range 30 {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			servers[1].skew = time.Millisecond
			one, _ := servers.client(t, 10*time.Millisecond)
			two, _ := servers.client(t, 10*time.Millisecond)
			holder, waiter := mutex("jobs"), queued(mutex("jobs"))
			mustAcquire(t, one, holder)
			wantHeld(t, two, waiter)
			go func() {
				time.Sleep(time.Duration(delay) * time.Millisecond)
				noError(t, two.Close())
			}()
			mustRelease(t, one, holder)
			time.Sleep(time.Second)
		})
	}
}

// A waiter trusts a grant signal for its QueueTTL after it sent the last attempt that was
// queued. In the next tests some nodes do not get that attempt, and so keep their grants
// for a shorter time.

// A client has not read a grant signal yet when it sends the claim again. This attempt is
// refused, because one of the nodes is not reached. The signal was about places that the
// attempt did not keep.
func TestAnAttemptInvalidatesEarlierSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[2].skew = time.Second // so the agreed fence is above those of the other nodes
		one, _ := servers.client(t, time.Millisecond)
		two, lines := servers.client(t, time.Millisecond)
		three, _ := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter, other := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		lines[0].down.Store(true)
		wantHeld(t, two, waiter)
		mustRelease(t, one, holder)
		wantHeld(t, three, other) // granted by the node on which the waiter has no place
		time.Sleep(time.Second)
		granted, _ := takeAll(signals)
		if len(granted) != 1 {
			t.Fatalf("signals %+v; want one grant", granted)
		}

		lines[0].down.Store(false)
		lines[1].down.Store(true) // its vote ends 5 s after the first attempt
		_, err := two.Acquire(t.Context(), waiter)
		held, ok := errors.AsType[*driver.HeldError](err)
		if !ok || held.Fence < granted[0].Fence {
			t.Errorf("Acquire: %v; want ErrHeld, with a fence of at least %d", err, granted[0].Fence)
		}
	})
}

// A node's answer to an earlier attempt arrives after the next one has begun, which the
// node never gets.
func TestALateAnswerDoesNotCountForTheNextAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, _ := servers.client(t, time.Millisecond)
		two, lines := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		lines[0].answerDelay.Store(int64(3500 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		attempt := func() {
			if _, err := two.Acquire(ctx, waiter); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
		attempt()
		time.Sleep(3 * time.Second)
		lines[0].hung.Store(true)
		attempt()
		time.Sleep(time.Second) // the node's answer to the first attempt arrives after half of it
		takeAll(signals)
		servers[0].forgetClaim(t, holder) // it keeps the place for 1 s, but the client would trust the signal for 4 s
		servers[1].forgetClaim(t, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		lines[0].hung.Store(false)
		lines[0].answerDelay.Store(0)
		mustAcquire(t, two, waiter)
	})
}

// A try keeps no place. So the trust in a later signal counts from the last queued
// attempt on each node.
func TestATryDoesNotExtendTheTrustInSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, _ := servers.client(t, time.Millisecond)
		two, lines := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		wantHeld(t, two, waiter)
		time.Sleep(3 * time.Second)
		lines[0].down.Store(true)
		wantHeld(t, two, waiter)
		lines[0].down.Store(false)
		try := waiter
		try.Queue = false
		wantHeld(t, two, try)
		takeAll(signals)
		servers[0].forgetClaim(t, holder) // it keeps the place for 2 s, but the client would trust the signal for 5 s
		servers[1].forgetClaim(t, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		mustAcquire(t, two, waiter)
	})
}

// A try between queued attempts does not invalidate the signals about their places.
func TestATryDoesNotInvalidateSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, _ := servers.client(t, time.Millisecond)
		two, _ := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		wantHeld(t, two, waiter)
		try := waiter
		try.Queue = false
		wantHeld(t, two, try)
		mustRelease(t, one, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) != 1 || retries > 0 {
			t.Errorf("grants %+v and %d retries; want one grant", granted, retries)
		}
	})
}

// The caller has given up when the nodes agree on a fence. They keep the lease for its
// TTL, which is shorter than the trust in a signal.
func TestAGrantThatIsShorterThanThePlaceSignalsARetry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[1].skew, servers[2].skew = 200*time.Millisecond, -300*time.Millisecond // so the fences differ
		one, _ := servers.client(t, time.Millisecond)
		two, lines := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		waiter.TTL = time.Second
		mustAcquire(t, one, holder)
		wantHeld(t, two, waiter)
		time.Sleep(time.Second)
		mustRelease(t, one, holder)
		time.Sleep(time.Second)
		takeAll(signals)
		for _, l := range lines {
			l.requestDelay.Store(int64(40 * time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond) // enough for one round trip
		defer cancel()
		if _, err := two.Acquire(ctx, waiter); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		again, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if _, err := two.Acquire(again, waiter); err != nil {
			t.Errorf("second attempt: %v; want the grant that was found meanwhile", err)
		}
	})
}

// A node signals a grant. Then a node without data, whose clock is behind, replaces it.
// The client does not count the signal of the old node as a vote of the new one.
func TestAGrantThatANodeHasForgottenIsNoVote(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[0].skew = time.Hour
		one, oneLines := servers.client(t, time.Millisecond)
		two, twoLines := servers.client(t, time.Millisecond)
		three, threeLines := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, second, third := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		setDown(true, threeLines[0], threeLines[1])
		if _, err := three.Acquire(t.Context(), third); !errors.Is(err, driver.ErrUnavailable) {
			// the third claim is in the queue of the last node only
			t.Fatal(err)
		}
		setDown(false, threeLines[0], threeLines[1])
		wantHeld(t, two, second)
		wantHeld(t, three, third)
		servers[0].forgetClaim(t, holder) // it signals the second claim, which has no majority
		time.Sleep(time.Second)

		servers[0].skew = 0
		servers[0].replace(oneLines[0], twoLines[0], threeLines[0])
		mustRelease(t, one, holder) // one of the other nodes grants the second claim, one the third
		g := mustAcquire(t, three, third)
		_, err := two.Acquire(t.Context(), second)
		time.Sleep(time.Second)
		if granted, _ := takeAll(signals); err == nil || len(granted) > 0 {
			t.Fatalf("two holders: fence %d, and %v %+v", g.Fence, err, granted)
		}
		mustRelease(t, three, third)
		mustAcquire(t, two, second)
	})
}
