package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// Pawl's side of each pair of docs/coming-from.md: it compiles, and does what is said
// there.
func TestWhatComingFromSays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locks, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer locks.Close(context.Background())
	f := func(context.Context) error { return nil }

	// redsync, etcd
	m := locks.Mutex("report", pawl.WithTTL(30*time.Second))
	lease, err := m.Lock(ctx)
	noError(t, err)
	select {
	case <-lease.Done():
		t.Error("lost")
	default:
	}
	// bsm/redislock
	_, err = locks.Mutex("report", pawl.WithLabel("job", "42")).TryLock(ctx)
	if !errors.Is(err, pawl.ErrHeld) || time.Until(lease.Deadline()) <= 0 || lease.Fence() == 0 {
		t.Error("not as it says")
	}
	noError(t, lease.Release(ctx))
	both, err := pawl.All(locks.Mutex("a"), locks.Mutex("b")).Lock(ctx)
	noError(t, err)
	noError(t, both.Release(ctx))
	// rueidislock
	noError(t, locks.Mutex("report").Do(ctx, f))
	if ran, err := locks.Mutex("report").TryDo(ctx, f); !ran || err != nil {
		t.Error("not as it says")
	}
	forced := must(t)(locks.Mutex("report").ForceLock(ctx))
	// Redisson
	noError(t, locks.Break(ctx, "report", forced.Fence(), 0))
	// client-go
	e := locks.Election("controller", pawl.WithTTL(15*time.Second), pawl.WithValue([]byte("me")))
	noError(t, e.Run(ctx, f))
	for leader, err := range e.Watch(ctx) {
		if err != nil || leader.Term != 0 {
			t.Errorf("%+v, %v", leader, err)
		}
		break
	}
	// ShedLock
	if ran, err := locks.Once("report").Do(ctx, pawl.TimeKey(time.Now()), f); !ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
	if ran, err := locks.Mutex("report", pawl.WithMinHold(time.Millisecond)).TryDo(ctx, f); !ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
}
