// Package bubble runs tests in virtual time, also under the race detector.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test is [synctest.Test]. Under the race detector, the process runs Go code on one
// processor until f has ended: as of Go 1.26, two goroutines of a bubble that look at due
// timers at the same moment use one record of the detector at once, and it ends the
// process (golang/go#78156).
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
	processors int // what GOMAXPROCS was before the first bubble
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
