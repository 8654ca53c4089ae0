package sqlitelock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestANameIsHandedOverBetweenProcessesInMilliseconds(t *testing.T) {
	nightly(t, "a slow machine takes longer")
	took := handOvers(t, 40)
	slices.Sort(took)
	if p50 := took[len(took)/2]; p50 > 50*time.Millisecond { // ten times as long as on a quiet machine
		t.Fatalf("half of the hand-overs took more than %v: %v", p50, took)
	}
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

// BenchmarkWaiting measures what a process uses that waits in a queue.
func BenchmarkWaiting(b *testing.B) {
	byBellAndByPolling(b, func(b *testing.B) {
		const seconds = 6
		b.Setenv(childSeconds, strconv.Itoa(seconds))
		path := file(b)
		gets(b, open(b, path, nil), mutex("busy"))
		_, out := spawn(b, "wait", path)
		out.Scan()
		used, err := strconv.Atoi(out.Text())
		noError(b, err)
		b.ReportMetric(100*float64(used)/float64(seconds*time.Second), "%core")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkCrowd has four processes whose clients all wait for one name. It measures what
// a grant costs with such a long queue.
func BenchmarkCrowd(b *testing.B) {
	const processes, seconds = 4, 5
	for _, clients := range []int{1, 75, 250} {
		b.Run(strconv.Itoa(processes*clients), func(b *testing.B) {
			b.Setenv(childClients, strconv.Itoa(clients))
			b.Setenv(childSeconds, strconv.Itoa(seconds))
			path := file(b)
			said := make(chan string)
			for range processes {
				_, out := spawn(b, "crowd", path)
				go func() {
					out.Scan()
					out.Scan()
					said <- out.Text()
				}()
			}
			var total, troubles, worst int
			for range processes {
				var grants, refused, longest int
				must(fmt.Fscan(strings.NewReader(<-said), &grants, &refused, &longest))(b)
				total, troubles, worst = total+grants, troubles+refused, max(worst, longest)
			}
			b.ReportMetric(float64(total)/seconds, "grants/s")
			b.ReportMetric(float64(troubles), "errors")
			b.ReportMetric(float64(worst), "longest-wait-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
