package bubble_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// With synctest.Test, the race detector would end this test within 0.2 s.
func TestGoroutinesCheckDueTimersAtOnce(t *testing.T) {
	bubble.Test(t, func(*testing.T) {
		var checking sync.WaitGroup
		for range 8 {
			checking.Go(func() {
				for range 5_000 {
					<-time.NewTimer(0).C
				}
			})
		}
		checking.Wait()
	})
}
