package keepalive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

// flights takes all that may go now.
func flights(l *keepalive.Dispatch[int], now time.Time) (batches [][]int, under []*keepalive.Flight, wait time.Duration) {
	for {
		batch, f, wait := l.Take(now)
		if f == nil {
			return batches, under, wait
		}
		batches, under = append(batches, batch), append(under, f)
	}
}

func fill(l *keepalive.Dispatch[int], from, to int) {
	for i := from; i < to; i++ {
		put(l, i, keepalive.Health{})
	}
}

func put(l *keepalive.Dispatch[int], x int, h keepalive.Health) { l.Add(x, time.Minute, h) }

func TestFourLargeBatchesGoAtOnce(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 2000)
	batches, _, wait := flights(l, start)
	if len(batches) != 4 || len(batches[3]) != keepalive.Batch || batches[3][0] != 3*keepalive.Batch {
		t.Fatalf("%d batches", len(batches))
	}
	if wait <= 0 {
		t.Fatalf("the next in %v", wait)
	}
	if more, _, _ := flights(l, start.Add(wait)); len(more) != 4 { // the first do not count any more
		t.Errorf("%d more, when those had no answer for %v", len(more), wait)
	}
}

// The number of hanging leases with a long TTL, under way or waiting for a repeat, does
// not matter.
func TestShortLeasesNeitherShareABatchNorARoomWithLongOnes(t *testing.T) {
	for _, ttl := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		l := &keepalive.Dispatch[int]{}
		fill(l, 0, 2000)
		l.Add(-1, ttl, keepalive.Health{})
		batches, under, _ := flights(l, start)
		if i := slices.IndexFunc(batches, func(b []int) bool { return b[0] == -1 }); i < 0 || len(batches[i]) != 1 {
			t.Fatalf("it does not go alone: %v", i)
		}
		failed := l.Failed(under[1], len(batches[1]), 0, keepalive.Health{})
		for range 2000 {
			put(l, 0, failed)
		}
		for i := range 500 { // until there is no room for more
			_, _, _ = flights(l, start.Add(time.Duration(i)*20*time.Millisecond))
		}
		l.Add(-1, ttl, failed)
		if batch, _, _ := l.Take(at(10 * time.Second)); len(batch) != 1 || batch[0] != -1 {
			t.Errorf("one of %v stands in line behind those that hang", ttl)
		}
	}
}

func TestAnAnswerMakesRoom(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 2000)
	_, under, _ := flights(l, start)
	if !l.Landed(under[0], start, true) {
		t.Error("nothing stands in line, it says")
	}
	if more, _, _ := flights(l, start); len(more) != 1 {
		t.Errorf("%d more", len(more))
	}
}

// From a batch of 256 to a lease that goes alone it takes three more.
func TestWhatFailsGoesInSmallerAndSmallerBatches(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	health := make([]keepalive.Health, 256)
	var sizes []int
	now := start
	for range 5 {
		for i, h := range health {
			put(l, i, h)
		}
		largest, hung := 0, false
		for !hung || l.Landed(&keepalive.Flight{}, now, true) {
			batches, under, _ := flights(l, now)
			for i, b := range batches {
				hangs := slices.Contains(b, 100)
				for _, x := range b {
					health[x] = keepalive.Health{}
					if hangs {
						health[x] = l.Failed(under[i], len(b), 0, health[x])
					}
				}
				if hangs {
					largest, hung = len(b), true
				} else {
					l.Landed(under[i], now, true)
				}
			}
			now = now.Add(time.Second)
		}
		sizes = append(sizes, largest)
		now = now.Add(time.Minute)
	}
	if !slices.Equal(sizes, []int{256, 32, 4, 1, 1}) {
		t.Errorf("the one that hangs went in batches of %d", sizes)
	}
	for i, h := range health {
		if h.OK() == (i == 100) {
			t.Errorf("lease %d is %+v", i, h)
		}
	}
}

func TestOnlyAFewAreSplitWhileNothingIsAnswered(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 256)
	_, f, _ := l.Take(start)
	if h := l.Failed(f, 4, 0, keepalive.Health{}); !h.Split() {
		t.Error("it is not split though it is the first")
	}
	if h := l.Failed(f, 4, 64, keepalive.Health{}); h.Split() || h.OK() {
		t.Errorf("it is split beside 64 others: %+v", h)
	}
	l.Alive(start)
	if h := l.Failed(f, 4, 64, keepalive.Health{}); !h.Split() {
		t.Error("it is not split though the backend answers others")
	}
}

func TestWhatIsRefusedAgainIsPaced(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 1)
	_, f, _ := l.Take(start)
	failed := l.Failed(f, 256, 0, keepalive.Health{})
	l.Landed(f, start, false)
	sent, now := 0, start
	for now.Before(at(10 * time.Second)) {
		for range 100 {
			put(l, 0, failed)
		}
		_, under, wait := flights(l, now)
		for _, f := range under {
			sent++
			l.Landed(f, now, false)
		}
		now = now.Add(max(wait, time.Millisecond))
	}
	if sent > 600 {
		t.Errorf("%d in 10 s", sent)
	}
}

func TestThoseThatHangAreBounded(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 1_000_000)
	n, now := 0, start
	for range 1000 {
		_, under, _ := flights(l, now)
		n += len(under)
		now = now.Add(time.Second)
	}
	if n == 0 || n > keepalive.Flights {
		t.Errorf("%d are under way", n)
	}
	if rest := l.Rest(); len(rest) != 1_000_000-n*keepalive.Batch {
		t.Errorf("%d stand in line", len(rest))
	}
}
