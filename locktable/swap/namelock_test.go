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

func TestANameIsForOneAtATimeInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var names nameLocks
		if err := names.lock(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		if err := names.lock(t.Context(), "b", false); err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				if err := names.lock(t.Context(), "a", false); err != nil {
					t.Error(err)
				}
				order = append(order, i)
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
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Error(order)
		}
		names.unlock("b")
		if len(names.queues) > 0 {
			t.Error("queues are left")
		}
	})
}

func TestAheadIsBeforeAllThatAreNotAndBehindThoseThatAre(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var names nameLocks
		if err := names.lock(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, who := range []string{"1", "2", "ahead 1", "ahead 2"} {
			go func() {
				if err := names.lock(t.Context(), "a", len(who) > 1); err != nil {
					t.Error(err)
				}
				order = append(order, who)
				names.unlock("a")
			}()
			synctest.Wait()
		}
		names.unlock("a")
		synctest.Wait()
		if want := []string{"ahead 1", "ahead 2", "1", "2"}; !slices.Equal(order, want) {
			t.Errorf("%q; want %q", order, want)
		}
	})
}
