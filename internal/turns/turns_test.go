package turns

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
		var turns Turns
		if err := turns.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := turns.Enter(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				if err := turns.Enter(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				order = append(order, i)
				turns.Leave("a")
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := turns.Enter(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		turns.Leave("a")
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Error(order)
		}
		turns.Leave("b")
		if len(turns.lines) > 0 {
			t.Error("lines are left")
		}
	})
}

func TestAheadIsBeforeAllThatAreNotAndBehindThoseThatAre(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var turns Turns
		if err := turns.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, who := range []string{"1", "2", "ahead 1", "ahead 2"} {
			go func() {
				enter := turns.Enter
				if len(who) > 1 {
					enter = turns.EnterAhead
				}
				if err := enter(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				order = append(order, who)
				turns.Leave("a")
			}()
			synctest.Wait()
		}
		turns.Leave("a")
		synctest.Wait()
		if want := []string{"ahead 1", "ahead 2", "1", "2"}; !slices.Equal(order, want) {
			t.Errorf("%q; want %q", order, want)
		}
	})
}
