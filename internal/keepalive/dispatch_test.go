package keepalive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// takeAll takes all that may go now.
func takeAll(l *keepalive.Dispatch[int], now time.Time) (leases [][]int, under []*keepalive.Batch, wait time.Duration) {
	for {
		some, b, wait := l.Take(now)
		if b == nil {
			return leases, under, wait
		}
		leases, under = append(leases, some), append(under, b)
	}
}

func fill(l *keepalive.Dispatch[int], from, to int) {
	for i := from; i < to; i++ {
		put(l, i, keepalive.Normal)
	}
}

func put(l *keepalive.Dispatch[int], x int, h keepalive.Health) { l.Add(x, time.Minute, h) }

func TestFourLargeBatchesGoAtOnce(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 2000)
	batches, _, wait := takeAll(l, start)
	if len(batches) != 4 || len(batches[3]) != keepalive.BatchSize || batches[3][0] != 3*keepalive.BatchSize {
		t.Fatalf("%d batches", len(batches))
	}
	if wait <= 0 {
		t.Fatalf("the next in %v", wait)
	}
	if more, _, _ := takeAll(l, start.Add(wait)); len(more) != 4 { // the first do not count any more
		t.Errorf("%d more, when those had no answer for %v", len(more), wait)
	}
}

// The number of hanging leases with a long TTL, under way or waiting for a repeat, does
// not matter.
func TestShortLeasesShareNeitherBatchesNorLimitsWithLongOnes(t *testing.T) {
	for _, ttl := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		l := &keepalive.Dispatch[int]{}
		fill(l, 0, 2000)
		l.Add(-1, ttl, keepalive.Normal)
		batches, under, _ := takeAll(l, start)
		if i := slices.IndexFunc(batches, func(b []int) bool { return b[0] == -1 }); i < 0 || len(batches[i]) != 1 {
			t.Fatalf("it does not go alone: %v", i)
		}
		failed := under[1].HealthAfterFailure(len(batches[1]), 0, false)
		for range 2000 {
			put(l, 0, failed)
		}
		for i := range 500 { // until there is no room for more
			_, _, _ = takeAll(l, start.Add(time.Duration(i)*20*time.Millisecond))
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
	_, under, _ := takeAll(l, start)
	if !l.Done(under[0], start, true) {
		t.Error("nothing stands in line, it says")
	}
	if more, _, _ := takeAll(l, start); len(more) != 1 {
		t.Errorf("%d more", len(more))
	}
}

// From a batch of 256 to a lease that goes alone it takes two more.
func TestWhatFailsGoesInSmallerBatchesAndThenAlone(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	health := make([]keepalive.Health, 256)
	var sizes []int
	now := start
	for range 4 {
		for i, h := range health {
			put(l, i, h)
		}
		for more := true; more; now = now.Add(time.Second) {
			batches, under, _ := takeAll(l, now)
			for i, b := range batches {
				hangs := slices.Contains(b, 100)
				for _, x := range b {
					health[x] = keepalive.Normal
					if hangs {
						health[x] = under[i].HealthAfterFailure(len(b), 0, false)
					}
				}
				if hangs {
					sizes = append(sizes, len(b))
				}
				more = l.Done(under[i], now.Add(time.Second), !hangs)
			}
		}
	}
	if !slices.Equal(sizes, []int{256, 16, 1, 1}) {
		t.Errorf("the one that hangs went in batches of %d", sizes)
	}
	for i, h := range health {
		if (h == keepalive.Hanging) != (i == 100) || i != 100 && h != keepalive.Normal {
			t.Errorf("lease %d is %v", i, h)
		}
	}
}

func TestOnlyAFewGoAloneWhileNothingIsAnswered(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	for i := range 16 {
		put(l, i, keepalive.Suspect)
	}
	_, b, _ := l.Take(start)
	for _, c := range []struct {
		alone int
		down  bool
		want  keepalive.Health
	}{
		{0, true, keepalive.SentAlone},
		{64, true, keepalive.Suspect},
		{64, false, keepalive.SentAlone},
	} {
		if h := b.HealthAfterFailure(16, c.alone, c.down); h != c.want {
			t.Errorf("beside %d alone, down %v: %v, want %v", c.alone, c.down, h, c.want)
		}
	}
}

func TestWhatIsRefusedAgainIsPaced(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 1)
	_, b, _ := l.Take(start)
	failed := b.HealthAfterFailure(256, 0, false)
	l.Done(b, start, false)
	sent, now := 0, start
	for now.Before(at(10 * time.Second)) {
		for range 100 {
			put(l, 0, failed)
		}
		_, under, wait := takeAll(l, now)
		for _, b := range under {
			sent++
			l.Done(b, now, false)
		}
		now = now.Add(max(wait, time.Millisecond))
	}
	if sent > 600 {
		t.Errorf("%d in 10 s", sent)
	}
}

func TestHangingBatchesAreBounded(t *testing.T) {
	l := &keepalive.Dispatch[int]{}
	fill(l, 0, 1_000_000)
	n, now := 0, start
	for range 1000 {
		_, under, _ := takeAll(l, now)
		n += len(under)
		now = now.Add(time.Second)
	}
	if n == 0 || n > 96+64+64+16 { // the sum of maxBatches
		t.Errorf("%d are under way", n)
	}
}
