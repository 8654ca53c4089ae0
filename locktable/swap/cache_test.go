package swap

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

func TestExpiredValuesDoNotPileUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := cache{values: map[string]cached{}}
		c.put("kept", Stored{Version: 1})
		for i := range 2000 {
			c.putUntil(fmt.Sprint(i), Stored{}, time.Now().Add(longQueueAge))
			time.Sleep(time.Millisecond)
		}
		if n := len(c.values); n > 100 {
			t.Errorf("the cache has %d values; want 100 at most", n)
		}
		if kept, known := c.get("kept"); !known || kept.Version != 1 {
			t.Errorf("get returns %+v, %t; want the value that does not expire", kept, known)
		}
	})
}
