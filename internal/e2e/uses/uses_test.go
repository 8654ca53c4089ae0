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
