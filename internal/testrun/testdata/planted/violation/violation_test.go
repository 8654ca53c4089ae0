package violation

import (
	"os"
	"sync/atomic"
	"testing"
)

// TestOverlap reports a violation the first time that it runs.
func TestOverlap(t *testing.T) {
	f, err := os.OpenFile(os.Getenv("PLANTED_FIRST"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	var inside atomic.Int32
	for range 2 { // no lock
		if inside.Add(1) > 1 {
			t.Error("VIOLATION: two are inside")
		}
	}
}
