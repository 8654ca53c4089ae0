package sim

import (
	"fmt"
	"testing"
)

// The fuzzer chooses the bytes from which a plan is drawn, and the fate of each message
// follows from them. The plans have one node, because that is quick.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a schedule in which two processes take names from each other by force while the node hangs"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := simulate(t, planOf(chosen(b), "memory"), planted{}); len(h.found) > 0 {
			report(t, h, fmt.Sprintf("bytes %q", b), "go test -run FuzzSchedule/NAME ./internal/e2e/sim")
		}
	})
}
