package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestANameIsForOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
