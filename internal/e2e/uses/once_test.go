package uses_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
)

func nothing(context.Context) error { return nil }

func TestAKeyIsDoneByOneInstance(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		var instances []*pawl.Once
		for range 5 {
			instances = append(instances, b.client(t, nil).Once(name))
		}
		for tick := range 5 {
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

// In the mode at most once, the instance that begins a key spends it. In the mode until
// done, another instance repeats it.
func TestAFailureSpendsAKeyOrIsTakenUp(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		for what, o := range map[string]pawl.OnceOption{"AtMostOnce": nil, "AtLeastOnce": pawl.WithAtLeastOnce()} {
			name := fresh(t)
			first, second := b.client(t, nil).Once(name, o), b.client(t, nil).Once(name, o)
			own := errors.New("no disk")
			ran, err := first.Do(soon(t), "1", func(context.Context) error { return own })
			if !ran || !errors.Is(err, own) {
				t.Errorf("%s: %v, %v", what, ran, err)
			}
			for _, want := range []bool{o != nil, false} {
				if ran, err = second.Do(soon(t), "1", nothing); ran != want || err != nil {
					t.Errorf("%s, after a failure: %v, %v; want %v", what, ran, err, want)
				}
			}
		}
	})
}

// The instance dies at work. Its lease is not renewed, and the next instance repeats the
// key.
func TestADeadInstancesKeyIsTakenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, cut := b.mortal(t, brief)
		at, over := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := a.Once(name, pawl.WithAtLeastOnce()).Do(background, "1", func(ctx context.Context) error {
				cut.die()
				close(at)
				<-ctx.Done() // its ctx ends before another can begin
				return nil
			})
			over <- err
		}()
		get(t, at, "its work")
		done := false
		ran, err := b.client(t, nil).Once(name, pawl.WithAtLeastOnce()).Do(soon(t), "1", func(context.Context) error { done = true; return nil })
		if !ran || !done || err != nil {
			t.Errorf("%v, %v, %v", ran, done, err)
		}
		isError(t, get(t, over, "the end of the dead one's"), pawl.ErrLost)
	})
}

func TestATryOfATickThatIsAtWorkSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other := b.client(t, nil).Once(name), b.client(t, nil).Once(name)
		ran, err := a.TryDo(soon(t), "1", func(ctx context.Context) error {
			_, err := other.TryDo(ctx, "2", nothing)
			isError(t, err, pawl.ErrHeld)
			ran, err := other.TryDo(ctx, "1", nothing) // done, or held: no function runs
			if ran || err != nil && !errors.Is(err, pawl.ErrHeld) {
				t.Errorf("%v, %v", ran, err)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("%v, %v", ran, err)
		}
		if _, err := a.Do(soon(t), "", nothing); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("an empty key: %v", err)
		}
	})
}

func TestKeysWithoutAnOrder(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		o, other := b.client(t, nil).Once(name, pawl.WithUnorderedKeys()), b.client(t, nil).Once(name, pawl.WithUnorderedKeys())
		for _, key := range []string{"b", "a"} {
			ran, err := o.Do(soon(t), key, func(ctx context.Context) error {
				ran, err := other.Do(ctx, key+"2", nothing) // at the same time as this function
				if !ran {
					t.Error("keys wait for each other")
				}
				return err
			})
			if !ran || err != nil {
				t.Errorf("%s: %v, %v", key, ran, err)
			}
			if ran, err = other.Do(soon(t), key, nothing); ran || err != nil {
				t.Errorf("%s again: %v, %v", key, ran, err)
			}
		}
	})
}
