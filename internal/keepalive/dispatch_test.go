package keepalive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// takeAll calls Take until it returns no batch.
func takeAll(d *keepalive.Dispatch[int], now time.Time) (leases [][]int, sent []*keepalive.Batch, wait time.Duration) {
	for {
		some, b, wait := d.Take(now)
		if b == nil {
			return leases, sent, wait
		}
		leases, sent = append(leases, some), append(sent, b)
	}
}

func addNormal(d *keepalive.Dispatch[int], from, to int) {
	for i := from; i < to; i++ {
		add(d, i, keepalive.Normal)
	}
}

func add(d *keepalive.Dispatch[int], x int, h keepalive.Health) { d.Add(x, time.Minute, h) }

func TestFourLargeBatchesAreSentAtOnce(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	addNormal(d, 0, 2000)
	batches, _, wait := takeAll(d, start)
	if len(batches) != 4 || len(batches[3]) != keepalive.BatchSize || batches[3][0] != 3*keepalive.BatchSize {
		t.Fatalf("%d batches, want 4 full ones", len(batches))
	}
	if wait <= 0 {
		t.Fatalf("Take returns the wait %v, want a positive one", wait)
	}
	if more, _, _ := takeAll(d, start.Add(wait)); len(more) != 4 { // the first batches are no longer young
		t.Errorf("%d more batches after %v, want 4", len(more), wait)
	}
}

// Hanging leases with a long TTL do not delay leases with a short TTL.
func TestShortLeasesShareNeitherBatchesNorLimitsWithLongOnes(t *testing.T) {
	for _, ttl := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		d := &keepalive.Dispatch[int]{}
		addNormal(d, 0, 2000)
		d.Add(-1, ttl, keepalive.Normal)
		batches, sent, _ := takeAll(d, start)
		if i := slices.IndexFunc(batches, func(b []int) bool { return b[0] == -1 }); i < 0 || len(batches[i]) != 1 {
			t.Fatalf("the short lease is not sent in its own batch: %v", i)
		}
		failedHealth := sent[1].HealthAfterFailure(len(batches[1]), 0, false)
		for range 2000 {
			add(d, 0, failedHealth)
		}
		for i := range 500 { // until there is no room for more
			_, _, _ = takeAll(d, start.Add(time.Duration(i)*20*time.Millisecond))
		}
		d.Add(-1, ttl, failedHealth)
		if batch, _, _ := d.Take(at(10 * time.Second)); len(batch) != 1 || batch[0] != -1 {
			t.Errorf("a lease of %v waits behind hanging leases", ttl)
		}
	}
}

func TestAnAnswerMakesRoomForAnotherBatch(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	addNormal(d, 0, 2000)
	_, sent, _ := takeAll(d, start)
	if !d.Done(sent[0], start, true) {
		t.Error("Done reports that no lease waits")
	}
	if more, _, _ := takeAll(d, start); len(more) != 1 {
		t.Errorf("%d more batches, want 1", len(more))
	}
}

// A lease that hangs in a batch of 256 is sent alone after one smaller batch.
func TestAFailedLeaseIsSentInSmallerBatchesAndThenAlone(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	health := make([]keepalive.Health, 256)
	var sizes []int
	now := start
	for range 4 {
		for i, h := range health {
			add(d, i, h)
		}
		for more := true; more; now = now.Add(time.Second) {
			batches, sent, _ := takeAll(d, now)
			for i, b := range batches {
				hangs := slices.Contains(b, 100)
				for _, x := range b {
					health[x] = keepalive.Normal
					if hangs {
						health[x] = sent[i].HealthAfterFailure(len(b), 0, false)
					}
				}
				if hangs {
					sizes = append(sizes, len(b))
				}
				more = d.Done(sent[i], now.Add(time.Second), !hangs)
			}
		}
	}
	if !slices.Equal(sizes, []int{256, 16, 1, 1}) {
		t.Errorf("the hanging lease was sent in batches of %d", sizes)
	}
	for i, h := range health {
		if (h == keepalive.Hanging) != (i == 100) || i != 100 && h != keepalive.Normal {
			t.Errorf("lease %d has the health %v", i, h)
		}
	}
}

func TestFewLeasesAreSentAloneWhileNothingIsAnswered(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	for i := range 16 {
		add(d, i, keepalive.Suspect)
	}
	_, b, _ := d.Take(start)
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
			t.Errorf("with %d leases sent alone, down %v: %v, want %v", c.alone, c.down, h, c.want)
		}
	}
}

func TestFailedRetriesArePaced(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	addNormal(d, 0, 1)
	_, b, _ := d.Take(start)
	failedHealth := b.HealthAfterFailure(256, 0, false)
	d.Done(b, start, false)
	retryCount, now := 0, start
	for now.Before(at(10 * time.Second)) {
		for range 100 {
			add(d, 0, failedHealth)
		}
		_, sent, wait := takeAll(d, now)
		for _, b := range sent {
			retryCount++
			d.Done(b, now, false)
		}
		now = now.Add(max(wait, time.Millisecond))
	}
	if retryCount > 600 {
		t.Errorf("%d retries in 10 s, want 600 at most", retryCount)
	}
}

func TestHangingBatchesAreBounded(t *testing.T) {
	d := &keepalive.Dispatch[int]{}
	addNormal(d, 0, 1_000_000)
	n, now := 0, start
	for range 1000 {
		_, sent, _ := takeAll(d, now)
		n += len(sent)
		now = now.Add(time.Second)
	}
	if n == 0 || n > 96+64+64+16 { // the sum of maxBatches
		t.Errorf("%d batches are under way; want 1 or more, and 240 at most", n)
	}
}
