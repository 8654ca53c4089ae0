package sqlitelock

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// childPingPong gets the name that its partner holds, says when it heard of it, holds it for a while, and
// lets it go, again and again.
func childPingPong(d *Driver, heard <-chan driver.Signal) {
	for {
		c := queued("ball")
		waitFor(d, c, heard)
		got := time.Now()
		time.Sleep(30 * time.Millisecond) // longer than the eager looks of who just came
		released := time.Now()
		if err := d.Release(ctx, lease(c)); err != nil {
			panic(err)
		}
		fmt.Printf("%d %d\n", got.UnixNano(), released.UnixNano())
	}
}

// handOvers lets two processes hand a name back and forth, and returns how long each took: from before the
// release in one to after the acquiring in the other.
func handOvers(tb testing.TB, n int) []time.Duration {
	path := file(tb)
	type hold struct{ got, released int64 }
	holds := make(chan hold)
	enough := make(chan struct{})
	defer close(enough)
	for range 2 {
		_, out := spawn(tb, "pingpong", path)
		go func(out *bufio.Scanner) {
			for out.Scan() {
				var h hold
				if _, err := fmt.Sscan(out.Text(), &h.got, &h.released); err != nil {
					return
				}
				select {
				case holds <- h:
				case <-enough:
					return
				}
			}
		}(out)
	}
	var all []hold
	for len(all) < n+10 {
		all = append(all, <-holds)
	}
	slices.SortFunc(all, func(a, b hold) int { return int(a.got - b.got) })
	var took []time.Duration
	for i := range n {
		took = append(took, time.Duration(all[i+1].got-all[i].released))
	}
	return took
}

func TestANameIsHandedOverBetweenProcessesInMilliseconds(t *testing.T) {
	took := handOvers(t, 40)
	slices.Sort(took)
	if p50 := took[len(took)/2]; p50 > 50*time.Millisecond { // ten times what a quiet machine needs
		t.Fatalf("half of the hand-overs took more than %v: %v", p50, took)
	}
}

// byBellAndByPolling runs a benchmark of processes with, and without, the doorbell.
func byBellAndByPolling(b *testing.B, f func(b *testing.B)) {
	b.Run("Bell", f)
	b.Run("Polling", func(b *testing.B) {
		b.Setenv(childDeaf, "yes")
		f(b)
	})
}

// BenchmarkHandOver hands a name over between two processes.
func BenchmarkHandOver(b *testing.B) {
	byBellAndByPolling(b, func(b *testing.B) {
		took := handOvers(b, max(b.N, 10))
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(0, "ns/op")
	})
}

// childWaits waits in a queue for as long as it is told, and says how much of a processor that took.
func childWaits(d *Driver) {
	seconds, _ := strconv.Atoi(os.Getenv("PAWL_SQLITE_TEST_SECONDS"))
	c := queued("busy")
	used, end := cpuTime(), time.Now().Add(time.Duration(seconds)*time.Second)
	for time.Now().Before(end) {
		if _, err := d.Acquire(ctx, c); err == nil {
			panic("granted what is held")
		}
		time.Sleep(c.QueueTTL / 3) // the keep-alive of the root package
	}
	fmt.Printf("%d\n", cpuTime()-used)
}

// BenchmarkWaiting measures what a process uses that waits in a queue.
func BenchmarkWaiting(b *testing.B) {
	byBellAndByPolling(b, func(b *testing.B) {
		const seconds = 6
		b.Setenv("PAWL_SQLITE_TEST_SECONDS", strconv.Itoa(seconds))
		path := file(b)
		mustAcquire(b, open(b, path, nil), mutex("busy"))
		_, out := spawn(b, "wait", path)
		out.Scan()
		used, err := strconv.Atoi(out.Text())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100*float64(used)/float64(seconds*time.Second), "%core")
		b.ReportMetric(0, "ns/op")
	})
}
