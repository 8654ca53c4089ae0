package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// The test runs Pawl's side of each pair of docs/coming-from.md, in the words of the
// page.
func TestTheExamplesOfComingFromWork(t *testing.T) {
	ctx := t.Context()
	locks, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer locks.Close()
	worked := 0
	work := func(ctx context.Context) error {
		_, reports := pawl.FenceOf(ctx, "report")
		if _, leads := pawl.FenceOf(ctx, "controller"); reports || leads {
			worked++
		}
		return ctx.Err()
	}
	write := func(ctx context.Context, fence uint64) error {
		if known, _ := pawl.FenceOf(ctx, "report"); known != fence {
			return errors.New("not the fence of the context")
		}
		return work(ctx)
	}
	workedOnce := func(t *testing.T, err error) {
		t.Helper()
		noError(t, err)
		wantEqual(t, "runs of work", worked, 1)
		worked = 0
		if entry, err := locks.Inspect(ctx, "report"); err != nil || len(entry.Holders) > 0 {
			t.Errorf("the name is still held: %v, %v", entry.Holders, err)
		}
	}

	t.Run("redsync", func(t *testing.T) {
		workedOnce(t, func() error {
			m := locks.Mutex("report",
				pawl.WithTTL(30*time.Second))
			return m.Do(ctx, work)
		}())
		workedOnce(t, locks.Semaphore("report", 4).Do(ctx, work))
	})
	t.Run("bsm/redislock", func(t *testing.T) {
		show := func(left time.Duration) {
			wantWithin(t, "the time left", left, 1, 30*time.Second)
		}
		obtain := func() error {
			m := locks.Mutex("report",
				pawl.WithLabel("job", "42"))
			lease, err := m.TryLock(ctx)
			if errors.Is(err, pawl.ErrHeld) {
				return nil
			}
			if err != nil {
				return err
			}
			show(time.Until(lease.Deadline()))
			return lease.Release(ctx)
		}
		noError(t, obtain())
		held := must(locks.Mutex("report").Lock(ctx))(t)
		noError(t, obtain())
		noError(t, held.Release(ctx))
		both, err := pawl.All(locks.Mutex("a"), locks.Mutex("b")).TryLock(ctx)
		noError(t, err)
		noError(t, both.Release(ctx))
	})
	t.Run("rueidislock", func(t *testing.T) {
		workedOnce(t, func() error {
			return locks.Mutex("report").Do(ctx, work)
		}())
		ran, err := locks.Mutex("report").TryDo(ctx, work)
		workedOnce(t, err)
		forced := must(locks.Mutex("report").ForceLock(ctx))(t)
		noError(t, forced.Release(ctx))
		wantEqual(t, "ran", ran, true)
	})
	t.Run("pg_advisory_lock", func(t *testing.T) {
		workedOnce(t, locks.RWMutex("report").RDo(ctx, work))
	})
	t.Run("GET_LOCK", func(t *testing.T) {
		workedOnce(t, func() error {
			m := locks.Mutex("report",
				pawl.WithWait(10*time.Second))
			return m.Do(ctx, work)
		}())
	})
	t.Run("goose", func(t *testing.T) {
		workedOnce(t, locks.Mutex("report").Do(ctx, func(ctx context.Context) error {
			provider := migrations{work}
			_, err := provider.Up(ctx)
			return err
		}))
	})
	t.Run("unique jobs", func(t *testing.T) {
		orders := locks.Once("report", pawl.WithUnorderedKeys())
		for _, first := range []bool{true, false} {
			ran, err := orders.Do(ctx, "id", func(context.Context) error { return nil })
			if ran != first || err != nil {
				t.Errorf("ran is %v, %v; want %v", ran, err, first)
			}
		}
	})
	t.Run("client-go", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		id, shown := "me", make(chan string, 10)
		show := func(leader string) { shown <- leader }
		work := func(ctx context.Context) error {
			for leader := range shown {
				if leader == id {
					return work(ctx)
				}
			}
			return nil
		}
		workedOnce(t, func() error {
			e := locks.Election("controller",
				pawl.WithTTL(15*time.Second),
				pawl.WithGrace(5*time.Second),
				pawl.WithValue([]byte(id)))
			go func() {
				for leader := range e.Watch(ctx) {
					show(string(leader.Value))
				}
			}()
			return e.Run(ctx, work)
		}())
	})
	t.Run("etcd", func(t *testing.T) {
		workedOnce(t, func() error {
			lease, err := locks.Mutex("report").Lock(ctx)
			if err != nil {
				return err
			}
			defer lease.Release(ctx)
			return write(lease.Context(), lease.Fence())
		}())
	})
	t.Run("Consul", func(t *testing.T) {
		workedOnce(t, func() error {
			m := locks.Mutex("report",
				pawl.WithTTL(30*time.Second),
				pawl.WithLockDelay(5*time.Second))
			return m.Do(ctx, work)
		}())
	})
	t.Run("ShedLock", func(t *testing.T) {
		tick := time.Now()
		ran, err := locks.Once("report").Do(ctx,
			pawl.TimeKey(tick), work)
		workedOnce(t, err)
		if again, err := locks.Once("report").Do(ctx, pawl.TimeKey(tick), work); !ran || again || err != nil {
			t.Errorf("the first Do ran: %v, and the second: %v, %v; want true and false", ran, again, err)
		}
		m := locks.Mutex("report",
			pawl.WithMinHold(time.Minute))
		wantRun(t, true)(m.TryDo(ctx, work))
		wantRun(t, false)(m.TryDo(ctx, work)) // within the minimum hold
		wantEqual(t, "runs of work", worked, 1)
		entry, err := locks.Inspect(ctx, "report")
		noError(t, err)
		noError(t, locks.Break(ctx, "report", entry.Fence, noDelay))
		worked = 0
	})
	t.Run("both during the change", func(t *testing.T) {
		theirs := make(chan struct{}, 1) // the old lock
		old := func(ctx context.Context) error {
			theirs <- struct{}{}
			defer func() { <-theirs }()
			return work(ctx)
		}
		err := locks.Mutex("report").Do(ctx, func(ctx context.Context) error {
			return old(ctx)
		})
		workedOnce(t, err)
	})
}

// migrations stand for a goose.Provider.
type migrations struct {
	work func(ctx context.Context) error
}

func (m migrations) Up(ctx context.Context) ([]int, error) { return nil, m.work(ctx) }

// Examples with a *testing.T are not run by the go command.
func TestTheExampleWithSynctestPasses(t *testing.T) { synctest.Test(t, stopsWhenItsLockIsTaken) }
