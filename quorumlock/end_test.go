package quorumlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// An unanswered Acquire arrives after its releases. The quorum releases it once more
// after its end, no matter whether the caller or the quorum released it before.
func TestAnAcquireThatArrivesAfterItsReleaseLeavesNothing(t *testing.T) {
	const bound = time.Second
	for name, late := range map[string]int{"OnAMinority": 1, "OnAMajority": 2, "Everywhere": 3} {
		for _, queue := range []bool{false, true} {
			inBubble(t, name, func(t *testing.T) {
				servers := newCluster(3)
				d, lines := servers.client(t, time.Millisecond)
				var arrive []func()
				for _, l := range lines[3-late:] {
					arrive = append(arrive, l.delayNext("acquire"))
				}
				claim := mutex("jobs")
				if queue {
					claim = queued(claim)
				}
				ctx, cancel := context.WithTimeout(t.Context(), bound)
				defer cancel()
				_, err := d.Acquire(ctx, claim)
				if (err == nil) != (late == 1) {
					t.Fatalf("Acquire without %d of 3: %v", late, err)
				}
				if queue || err == nil {
					_ = d.Release(ctx, lease(claim))
				}
				time.Sleep(bound * 9 / 10)
				for _, f := range arrive {
					f()
				}
				time.Sleep(bound/10 + driver.MaxLead + 100*time.Millisecond)
				servers.wantNothingKept(t, "jobs")
			})
		}
	}
}

// The first attempt gets no answer, and the second is granted. After the release, the
// quorum releases the first attempt once more, after its end.
func TestAnUnansweredAttemptIsReleasedDespiteALaterGrant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		arrive := lines[2].delayNext("acquire")
		claim := mutex("jobs")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := d.Acquire(ctx, claim)
		noError(t, err)
		mustAcquire(t, d, claim)
		mustRelease(t, d, claim)
		time.Sleep(2 * time.Second)
		arrive()
		time.Sleep(2 * time.Second)
		servers.wantNothingKept(t, "jobs")
	})
}

// An unanswered release arrives after its token was claimed again, and must not remove
// the new vote. So the claim waits until the release can have no effect.
func TestAReleaseThatArrivesLateDoesNotEndALaterClaim(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond, 990 * time.Millisecond, 1100 * time.Millisecond, 2 * time.Second} {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			one, oneLines := servers.client(t, time.Millisecond)
			two, twoLines := servers.client(t, time.Millisecond)
			holder, claim := mutex("jobs"), mutex("jobs")
			claim.TTL = 6 * time.Second // so the release has its end within a second
			oneLines[2].down.Store(true)
			mustAcquire(t, one, holder) // on two nodes
			arrive := twoLines[2].delayNext("release")
			began := time.Now()
			wantHeld(t, two, claim) // granted by the third node, and released
			waiter := queued(claim)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				wantHeld(t, two, waiter)
			}()
			time.Sleep(time.Until(began.Add(late)))
			arrive()
			<-answered
			time.Sleep(2 * time.Second)
			if holders, _ := servers.countPerServer(t, "jobs"); !slices.Equal(holders, []int{1, 1, 1}) {
				t.Errorf("the release arrives %v late: holders on the nodes: %d, want 1 on each", late, holders)
			}
		})
	}
}

// Releases for a node that does not answer are kept in one list, without a goroutine for
// each.
func TestPendingReleasesForADeadNodeAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const cycles = 5000
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		lines[2].down.Store(true)
		before := runtime.NumGoroutine()
		for range cycles {
			claim := mutex("jobs")
			claim.TTL = time.Hour
			mustAcquire(t, d, claim)
			mustRelease(t, d, claim)
			time.Sleep(100 * time.Millisecond)
		}
		if n := runtime.NumGoroutine() - before; n > 20 {
			t.Errorf("%d more goroutines, want 20 at most", n)
		}
		if n := lines[2].calls.Load(); n > 2*cycles+1000 {
			t.Errorf("%d requests for %d claims, want %d at most", n, cycles, 2*cycles+1000)
		}
	})
}

// A call returns at the end of its ctx, even if no node answers.
func TestTheEndOfCtxEndsTheCallAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		held := mutex("held")
		mustAcquire(t, d, held)
		for _, l := range lines {
			l.stop()
			l.ignoresCancel.Store(true)
		}
		for name, call := range map[string]func(context.Context) error{
			"Acquire": func(ctx context.Context) error { _, err := d.Acquire(ctx, mutex("jobs")); return err },
			"Wait":    func(ctx context.Context) error { _, err := d.Acquire(ctx, queued(mutex("jobs"))); return err },
			"Release": func(ctx context.Context) error { return d.Release(ctx, lease(held)) },
			"Renew":   func(ctx context.Context) error { _, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); return err },
			"Entry":   func(ctx context.Context) error { _, err := d.Inspect(ctx, "jobs"); return err },
			"Force": func(ctx context.Context) error {
				claim := mutex("jobs")
				claim.Force = true
				_, err := d.Acquire(ctx, claim)
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			err := call(ctx)
			if took := time.Since(began); took > time.Second || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		}
		for _, l := range lines {
			l.ignoresCancel.Store(false)
			l.resume()
		}
	})
}
