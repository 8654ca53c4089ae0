package etcdlock

import (
	"slices"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// etcd limits the operations and the bytes of a request, and writes no key twice in one
// request. So two swaps that wake one client do not share a request, and no other swap
// shares a request with a large value.
func TestSwapsThatFitIntoOneRequest(t *testing.T) {
	small, large := swap.Swap{Value: make([]byte, 100)}, swap.Swap{Value: make([]byte, maxBytesPerRequest+1)}
	wakes := func(inboxes ...string) (s swap.Swap) {
		for _, inbox := range inboxes {
			s.Signals = append(s.Signals, locktable.Signal{Inbox: inbox})
		}
		return s
	}
	for what, tt := range map[string]struct {
		swaps []swap.Swap
		want  int
	}{
		"few":                      {slices.Repeat([]swap.Swap{small}, 5), 5},
		"many":                     {slices.Repeat([]swap.Swap{small}, 100), maxNamesPerRequest},
		"a large one":              {[]swap.Swap{large, small}, 1},
		"before a large one":       {[]swap.Swap{small, small, large}, 2},
		"two that wake others":     {[]swap.Swap{wakes("a", "b"), wakes("c")}, 2},
		"two that wake one":        {[]swap.Swap{wakes("a", "b"), small, wakes("c", "b")}, 2},
		"one that wakes one twice": {[]swap.Swap{wakes("a", "a"), wakes("b")}, 2},
	} {
		if got := new(store).Fit(tt.swaps); got != tt.want {
			t.Errorf("%s: %d fit; want %d", what, got, tt.want)
		}
	}
}

// A client that reads many names, each of them held once, does not keep all lease ends.
func TestPastLeaseEndsAreForgotten(t *testing.T) {
	s := &store{clock: ticked.New(), leaseEnds: map[string]locktable.Instant{}}
	for i := range locktable.Instant(10_000) {
		s.clock.Learn(ticked.Tick{Instant: i + 1, Rev: int64(i + 1)})
		s.recordLeases(strconv.Itoa(int(i)), &locktable.Entry{Holders: []locktable.Holder{{Expires: i + 10}}})
	}
	if n := len(s.leaseEnds); n > 200 {
		t.Errorf("the store keeps %d lease ends; want at most 200", n)
	}
}
