// Package bubble runs tests in virtual time, even under the race detector.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test is [synctest.Test], but under the race detector it sets GOMAXPROCS to 1 while f
// runs. Otherwise, as of Go 1.26, two goroutines of a bubble that check due timers at the
// same time corrupt a record of the detector, which ends the process (golang/go#78156).
func Test(t *testing.T, f func(*testing.T)) {
	if RaceDetector {
		running.begin()
		defer running.end()
	}
	synctest.Test(t, f)
}

// running counts the bubbles of this process.
var running bubbles

type bubbles struct {
	mu         sync.Mutex
	count      int
	processors int // GOMAXPROCS before the first bubble
}

func (b *bubbles) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count++; b.count == 1 {
		b.processors = runtime.GOMAXPROCS(1)
	}
}

func (b *bubbles) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count--; b.count == 0 {
		runtime.GOMAXPROCS(b.processors)
	}
}
