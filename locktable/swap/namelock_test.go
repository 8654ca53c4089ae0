package swap

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// Goroutines lock a name in the order of their calls, those with ahead first. Other names
// stay free.
func TestNameLocksAreGrantedInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var names nameLocks
		lock := func(ctx context.Context, name string, ahead bool) {
			if err := names.lock(ctx, name, ahead); err != nil {
				t.Error(err)
			}
		}
		lock(t.Context(), "a", false)
		lock(t.Context(), "b", false)
		var order []string
		for _, caller := range []string{"1", "2", "ahead 1", "ahead 2"} {
			go func() {
				lock(t.Context(), "a", len(caller) > 1)
				order = append(order, caller)
				names.unlock("a")
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := names.lock(short, "a", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		names.unlock("a")
		synctest.Wait()
		if want := []string{"ahead 1", "ahead 2", "1", "2"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q; want %q", order, want)
		}
		if names.unlock("b"); len(names.queues) > 0 {
			t.Error("queues are left")
		}
	})
}
