package uses_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func nothing(context.Context) error { return nil }

func TestAKeyIsDoneByOneInstance(t *testing.T) {
	on(t, backends, func(t *testing.T, b *backend) {
		name := fresh(t)
		var instances []*pawl.Once
		for range 5 {
			instances = append(instances, b.client(t).Once(name, pawl.WithAtLeastOnce()))
		}
		own := errors.New("no disk")
		if ran, err := instances[0].Do(soon(t), "0", func(context.Context) error { return own }); !ran || !errors.Is(err, own) {
			t.Errorf("a run that fails: %v, %v", ran, err)
		}
		for tick := range 5 { // the first is the one that has failed
			var ran, said atomic.Int32
			var all sync.WaitGroup
			for _, o := range instances {
				all.Go(func() {
					did, err := o.Do(soon(t), fmt.Sprint(tick), func(context.Context) error { ran.Add(1); return nil })
					if err != nil {
						t.Error(err)
					}
					if did {
						said.Add(1)
					}
				})
			}
			all.Wait()
			if ran.Load() != 1 || said.Load() != 1 {
				t.Errorf("tick %d ran %d times, and %d said so", tick, ran.Load(), said.Load())
			}
		}
		if ran, err := instances[0].Do(soon(t), "2", nothing); ran || err != nil {
			t.Errorf("an old tick: %v, %v", ran, err)
		}
	})
}

func TestThoseWhoWantTheSameLocksDoNotDeadlock(t *testing.T) {
	on(t, backends, func(t *testing.T, b *backend) {
		x, y := fresh(t), fresh(t)
		var all sync.WaitGroup
		inside := make(chan struct{}, 1)
		watcher := b.client(t)
		for i := range 5 {
			c := b.client(t)
			parts := []pawl.Lockable{c.Mutex(x), c.RWMutex(y)}
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
		free(t, watcher, x)
		free(t, watcher, y)
	})
}

func TestAnotherClientGoesOnWithADetachedLease(t *testing.T) {
	on(t, backends, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, next, other := b.client(t), b.client(t), b.client(t)
		lease := must(a.Mutex(name).Lock(soon(t)))(t)
		handle := must(lease.Detach(soon(t)))(t)
		isError(t, lease.Release(background), pawl.ErrDetached)
		noError(t, a.Close())

		again := must(next.Attach(soon(t), handle))(t)
		if again.Fence() != lease.Fence() || again.Name() != name {
			t.Errorf("attached: %v", again)
		}
		noError(t, again.Confirm(soon(t)))
		_, err := other.Mutex(name).TryLock(soon(t))
		isError(t, err, pawl.ErrHeld)
		noError(t, again.SetValue(soon(t), []byte("v")))
		noError(t, again.Release(background))
		if e := entry(t, other, name); string(e.Value) != "v" || e.ValueFence != lease.Fence() {
			t.Errorf("it left %+v", e)
		}
		lease = must(other.Mutex(name).TryLock(soon(t)))(t)
		_, err = next.Attach(soon(t), handle)
		isError(t, err, pawl.ErrLost)
		noError(t, lease.Confirm(soon(t))) // the old handle has not harmed it
	})
}

// A watch may skip quick changes. So each step waits until the watch has shown it.
func TestWatchYieldsEachChange(t *testing.T) {
	on(t, backends, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other, watcher := b.client(t), b.client(t), b.client(t)
		ctx, stop := context.WithCancel(background)
		defer stop()
		seen, over := make(chan string, 100), make(chan struct{})
		go func() {
			defer close(over)
			for e, err := range watcher.Watch(ctx, name) {
				if err != nil {
					t.Error(err)
				}
				seen <- fmt.Sprintf("%d hold, %d wait, closed %v, %q", len(e.Holders), len(e.Waiters), e.ClosedFor > 0, e.Value)
			}
		}()
		sees := func(want string) {
			t.Helper()
			if got := get(t, seen, want); got != want {
				t.Fatalf("it saw %s, want %s", got, want)
			}
		}
		sees(`0 hold, 0 wait, closed false, ""`)
		lease := must(a.Mutex(name).Lock(soon(t)))(t)
		sees(`1 hold, 0 wait, closed false, ""`)
		noError(t, lease.SetValue(soon(t), []byte("v")))
		sees(`1 hold, 0 wait, closed false, "v"`)
		waits, giveUp := context.WithCancel(background)
		gave := make(chan error, 1)
		go func() {
			_, err := other.Mutex(name).Lock(waits)
			gave <- err
		}()
		sees(`1 hold, 1 wait, closed false, "v"`)
		giveUp()
		isError(t, get(t, gave, "the end of the wait"), context.Canceled)
		sees(`1 hold, 0 wait, closed false, "v"`)
		noError(t, other.Break(background, name, lease.Fence(), &pawl.BreakOptions{Delay: time.Hour}))
		sees(`0 hold, 0 wait, closed true, "v"`)
		stop()
		get(t, over, "the end of Watch")
		isError(t, lease.Confirm(soon(t)), pawl.ErrLost)
	})
}
