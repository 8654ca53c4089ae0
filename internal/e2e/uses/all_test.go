package uses_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestAllAreHeldOrNone(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		x, y, z := fresh(t), fresh(t), fresh(t)
		a, other := b.client(t, nil), b.client(t, nil)
		leases := must(pawl.All(a.Semaphore(z, 4).Permits(2), a.Mutex(x), a.RWMutex(y).RLocker(), a.Mutex(x)).Lock(soon(t)))(t)
		for _, name := range []string{x, y, z} {
			if leases.Fence(name) == 0 {
				t.Errorf("%s has no fence", name)
			}
		}
		inTheWay := func(err error, name string) {
			t.Helper()
			if held, _ := errors.AsType[*pawl.HeldError](err); held == nil || held.Name != name {
				t.Errorf("in the way: %v; want %s", err, name)
			}
		}
		_, err := pawl.All(other.RWMutex(y).RLocker(), other.Mutex(x)).TryLock(soon(t))
		inTheWay(err, x)
		reader := must(other.RWMutex(y).RLock(soon(t)))(t)
		noError(t, leases.Release(background))
		isError(t, context.Cause(leases.Context()), pawl.ErrReleased)

		_, err = pawl.All(a.Mutex(x), a.Mutex(y), a.Mutex(z)).TryLock(soon(t))
		inTheWay(err, y)
		free(t, a, x)
		free(t, a, z)
		noError(t, reader.Release(background))
		free(t, a, y)
	})
}

func TestThoseWhoWantTheSameLocksDoNotDeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		x, y := fresh(t), fresh(t)
		var all sync.WaitGroup
		inside := make(chan struct{}, 1)
		for i := range 5 {
			c := b.client(t, nil)
			parts := []pawl.Lockable{c.Mutex(x), c.Mutex(y)}
			if i%2 == 0 {
				parts[0], parts[1] = parts[1], parts[0]
			}
			all.Go(func() {
				for range 5 {
					if err := pawl.All(parts...).Do(soon(t), func(ctx context.Context) error {
						select {
						case inside <- struct{}{}:
						default:
							t.Error("VIOLATION: two are inside")
							return nil
						}
						_, okx := pawl.FenceOf(ctx, x)
						_, oky := pawl.FenceOf(ctx, y)
						if !okx || !oky {
							t.Error("a fence is missing")
						}
						<-inside
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestAllEndWithTheFirstThatIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		x, y := fresh(t), fresh(t)
		a, other := b.client(t, nil), b.client(t, nil)
		leases := must(pawl.All(a.Mutex(x), a.Mutex(y)).Lock(soon(t)))(t)
		noError(t, other.Break(background, y, leases.Fence(y), &pawl.BreakOptions{Delay: time.Minute}))
		eventually(t, "it is heard of", func() bool { _ = leases.Err(); return leases.Context().Err() != nil })
		if lost, _ := errors.AsType[*pawl.LostError](context.Cause(leases.Context())); lost == nil || lost.Name != y {
			t.Errorf("the cause is %v", context.Cause(leases.Context()))
		}
		isError(t, leases.Release(background), pawl.ErrLost)
		free(t, a, x)
	})
}
