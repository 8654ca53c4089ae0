package leaktest_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/leaktest"
)

func waitFor(until <-chan struct{}) { <-until }

// The test binary may have other goroutines, so the test looks only for its own.
func TestFindReportsOnlyGoroutinesThatStay(t *testing.T) {
	finds := func(ignored ...string) bool {
		err := leaktest.Find(ignored...)
		return err != nil && strings.Contains(err.Error(), "leaktest_test.waitFor(")
	}
	bubble.Test(t, func(t *testing.T) { // so that the timeout takes no time
		until := make(chan struct{})
		go waitFor(until)
		if !finds() {
			t.Error("Find does not find a goroutine that stays")
		}
		if finds("leaktest_test.waitFor") {
			t.Error("Find finds an ignored goroutine")
		}
		close(until)
		if finds() {
			t.Error("Find finds a goroutine that has ended")
		}
	})
}
