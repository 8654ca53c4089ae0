package leaktest_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/leaktest"
)

func left(until <-chan struct{}) { <-until }

// The test binary itself has others: so each answer is held against its own goroutine.
func TestFind(t *testing.T) {
	has := func(ignored ...string) bool {
		err := leaktest.Find(ignored...)
		return err != nil && strings.Contains(err.Error(), "leaktest_test.left(")
	}
	bubble.Test(t, func(t *testing.T) { // where its patience takes no time
		until := make(chan struct{})
		go left(until)
		if !has() {
			t.Error("a goroutine that stays is not found")
		}
		if has("leaktest_test.left") {
			t.Error("a goroutine that is ignored is found")
		}
		close(until)
		if has() {
			t.Error("a goroutine that has ended is found")
		}
	})
}
