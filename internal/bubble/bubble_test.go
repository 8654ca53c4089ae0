package bubble_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// With synctest.Test, the race detector ends this test within 0.2 s.
func TestGoroutinesMayLookAtDueTimersAtOnce(t *testing.T) {
	bubble.Test(t, func(*testing.T) {
		var looking sync.WaitGroup
		for range 8 {
			looking.Go(func() {
				for range 5_000 {
					<-time.NewTimer(0).C
				}
			})
		}
		looking.Wait()
	})
}
