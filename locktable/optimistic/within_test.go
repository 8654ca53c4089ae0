package optimistic_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable/optimistic"
)

// An acknowledgement was in time if the server's clock cannot have left the window by
// then, though it may have been said when the answer had only been asked for.
func TestWithinIsSure(t *testing.T) {
	c := learned(10 * time.Millisecond)
	w := window(t, c, 0) // 50 ms
	for after, want := range map[time.Duration]bool{0: true, 39 * time.Millisecond: true, 41 * time.Millisecond: false, time.Second: false} {
		if got := c.Within(w, zero.Add(after)); got != want {
			t.Errorf("%v later it is within: %v; want %v", after, got, want)
		}
	}
	c.Forget()
	if c.Within(w, zero) {
		t.Error("it is within, by a clock that knows nothing")
	}
	var none optimistic.Clock
	if none.Within(w, zero) {
		t.Error("it is within, by a clock that never knew anything")
	}
}
