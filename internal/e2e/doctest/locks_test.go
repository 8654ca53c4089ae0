package doctest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/pawltest"
)

// The tests of docs/locks.md.

func takes(d time.Duration) job {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
}

func TestTheGuideOpensAClient(t *testing.T) {
	t.Setenv("PAWL_URL", "mem:")
	noError(t, guideOpen(t.Context(), takes(0)))
	if err := guideNamespace(t.Context(), "mem:", func(ctx context.Context) error {
		lease, ok := pawl.LeaseOf(ctx, "report")
		if !ok || lease.StoredName() != "@prod/acme:report" {
			t.Errorf("ctx has a lease: %v; it is stored as %q, want @prod/acme:report", ok, lease.StoredName())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestTheGuideTries(t *testing.T) {
	backend := pawltest.New(t)
	locks := backend.Client(nil)
	runs := 0
	report := func(context.Context) error { runs++; return nil }
	if err := guideTry(t.Context(), locks, report); err != nil || runs != 1 {
		t.Errorf("%d runs, %v; want 1", runs, err)
	}
	hold(t, backend, "report:nightly")
	if err := guideTry(t.Context(), locks, report); err != nil || runs != 1 {
		t.Errorf("%d runs while the name is held, %v; want 1 as before", runs, err)
	}
}

// hold locks a name as another process, until the test ends.
func hold(t *testing.T, backend *pawltest.Backend, name string) *pawl.Lease {
	t.Helper()
	lease, err := backend.Client(&pawl.Options{ID: "other"}).Mutex(name).Lock(t.Context())
	noError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
	return lease
}

func TestTheGuideStopsBetweenBatchesWhenItsLockIsLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		locks := backend.Client(nil)
		done := 0
		batch := func(context.Context) error { time.Sleep(time.Minute); done++; return nil }
		if err := guideLock(t.Context(), locks, []job{batch, batch}); err != nil || done != 2 {
			t.Errorf("%d batches, %v; want 2", done, err)
		}
		backend.AssertFree("import")
		lost := func(ctx context.Context) error { backend.Break("import"); return batch(ctx) }
		if err := guideLock(t.Context(), locks, []job{lost, batch}); !errors.Is(err, pawl.ErrLost) || done != 3 {
			t.Errorf("%d batches, %v; want 3 and ErrLost", done, err)
		}
	})
}

func TestTheGuideReadsWritesAndLimits(t *testing.T) {
	locks := pawltest.New(t).Client(nil)
	noError(t, guideReadWrite(t.Context(), locks, takes(0), takes(0)))
	big := func(ctx context.Context) error {
		if _, err := locks.Semaphore("exports", 4).TryAcquire(ctx, 2); !errors.Is(err, pawl.ErrHeld) {
			t.Errorf("two permits beside three of four: %v", err)
		}
		return nil
	}
	noError(t, guideSemaphore(t.Context(), locks, takes(0), big))
}

func TestTheGuideGivesUpAfterTenSeconds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		locks := backend.Client(nil)
		if err := guideWait(t.Context(), locks, takes(time.Hour)); err != nil {
			t.Errorf("the work took an hour, without a wait: %v", err)
		}
		hold(t, backend, "import")
		began := time.Now()
		err := guideWait(t.Context(), locks, takes(time.Hour))
		if took := time.Since(began); took != 10*time.Second || !errors.Is(err, pawl.ErrHeld) || !strings.HasPrefix(err.Error(), "given up") {
			t.Errorf("after %v: %v; want ErrHeld after 10 s", took, err)
		}
	})
}

func TestTheGuideLimitsTheWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		err := guideMaxHold(t.Context(), pawltest.New(t).Client(nil), takes(2*time.Hour))
		lost, ok := errors.AsType[*pawl.LostError](err)
		if took := time.Since(began); !ok || lost.Reason != pawl.ReasonMaxHold || took > time.Hour || took < 59*time.Minute {
			t.Errorf("after %v: %v; want ReasonMaxHold after an hour", took, err)
		}
	})
}

func TestTheGuideDoesNotRepeatAFinishedPayout(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		locks := backend.Client(nil)
		paid := func(context.Context) error { backend.Break("payout"); synctest.Wait(); return nil }
		if err := guideFinished(t.Context(), locks, paid); err != nil {
			t.Errorf("the lock was lost after the payout: %v", err)
		}
		interrupted := func(ctx context.Context) error { backend.Break("payout"); return takes(time.Hour)(ctx) }
		if err := guideFinished(t.Context(), locks, interrupted); !errors.Is(err, pawl.ErrLost) {
			t.Errorf("the lock was lost before the payout: %v", err)
		}
	})
}

func TestTheGuideNamesTheHolder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		locks := backend.Client(nil)
		hold(t, backend, "import:orders")
		hold(t, backend, "other")
		var b bytes.Buffer
		noError(t, guideHolders(t.Context(), locks, &b))
		guideHeld(t.Context(), locks, &b)
		text := b.String()
		if strings.Count(text, "\n") != 3 || strings.Count(text, "other at ") != 2 || !strings.Contains(text, "30s at most") {
			t.Errorf("it prints %s", text)
		}
	})
}

// The page names two times for a TTL of 30 s: when the name of a dead holder becomes
// free, and how long a database may be down. The test checks them at each half second
// after the grant.
func TestTheTimesOfTheGuideMatchTheDefaultTTL(t *testing.T) {
	const step = 500 * time.Millisecond
	for phase := step / 2; phase < 20*time.Second; phase += step {
		bubble.Test(t, func(t *testing.T) {
			backend := pawltest.New(t)
			dies := backend.Client(nil)
			must(dies.Mutex("x").Lock(t.Context()))(t)
			time.Sleep(phase)
			backend.Hang(dies)
			began := time.Now()
			hold(t, backend, "x")
			if took := time.Since(began); took < 20*time.Second || took > 30*time.Second {
				t.Errorf("the name of a holder that died after %v was free after %v", phase, took)
			}
		})
		for outage, lost := range map[time.Duration]bool{15 * time.Second: false, 28 * time.Second: true} {
			bubble.Test(t, func(t *testing.T) {
				for _, fault := range []func(*pawltest.Backend){
					func(b *pawltest.Backend) { b.Hang() },
					func(b *pawltest.Backend) { b.Fail(nil) },
				} {
					backend := pawltest.New(t)
					lease := hold(t, backend, "x")
					time.Sleep(phase)
					fault(backend)
					time.Sleep(outage)
					backend.Restore()
					time.Sleep(30 * time.Second)
					if err := lease.Err(); (err != nil) != lost {
						t.Errorf("after %v, and an outage of %v: %v", phase, outage, err)
					}
				}
			})
		}
	}
}
