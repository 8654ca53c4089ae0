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
	skipIfShort(t, "a slow machine takes longer")
	took := handOvers(t, 40)
	slices.Sort(took)
	if p50 := took[len(took)/2]; p50 > 50*time.Millisecond { // ten times as long as on a quiet machine
		t.Fatalf("half of the hand-overs took more than %v: %v", p50, took)
	}
}

// BenchmarkHandOver hands a name over between two processes.
func BenchmarkHandOver(b *testing.B) {
	withAndWithoutWakeUps(b, func(b *testing.B) {
		took := handOvers(b, max(b.N, 10))
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkWaiting measures the CPU time of a process that waits in a queue.
func BenchmarkWaiting(b *testing.B) {
	withAndWithoutWakeUps(b, func(b *testing.B) {
		const seconds = 6
		b.Setenv(childSeconds, strconv.Itoa(seconds))
		path := newPath(b)
		gets(b, open(b, path, nil), mutex("busy"))
		_, out := spawn(b, "wait", path)
		out.Scan()
		used, err := strconv.Atoi(out.Text())
		noError(b, err)
		b.ReportMetric(100*float64(used)/float64(seconds*time.Second), "%core")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkCrowd measures the cost of a grant with a long queue: all clients of four
// processes wait for one name.
func BenchmarkCrowd(b *testing.B) {
	const processes, seconds = 4, 5
	for _, clients := range []int{1, 75, 250} {
		b.Run(strconv.Itoa(processes*clients), func(b *testing.B) {
			b.Setenv(childClients, strconv.Itoa(clients))
			b.Setenv(childSeconds, strconv.Itoa(seconds))
			path := newPath(b)
			lines := make(chan string)
			for range processes {
				_, out := spawn(b, "crowd", path)
				go func() {
					out.Scan()
					out.Scan()
					lines <- out.Text()
				}()
			}
			var totalGrants, totalErrors, maxWait int
			for range processes {
				var grants, errs, longest int
				must(fmt.Fscan(strings.NewReader(<-lines), &grants, &errs, &longest))(b)
				totalGrants, totalErrors, maxWait = totalGrants+grants, totalErrors+errs, max(maxWait, longest)
			}
			b.ReportMetric(float64(totalGrants)/seconds, "grants/s")
			b.ReportMetric(float64(totalErrors), "errors")
			b.ReportMetric(float64(maxWait), "longest-wait-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
