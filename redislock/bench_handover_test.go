package redislock_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Clients that share nothing but the server want one name, again and again. What counts:
// how long a hand-over takes beside the work, how fair it is (Jain's index of the turns,
// and the longest wait), and how many scripts a turn costs.
func BenchmarkHandOver(b *testing.B) {
	for _, clients := range []int{8, 64} {
		for _, work := range []time.Duration{0, 2 * time.Millisecond} {
			b.Run(fmt.Sprintf("clients=%d/work=%v", clients, work), func(b *testing.B) { handOver(b, clients, work) })
		}
	}
}

func handOver(b *testing.B, clients int, work time.Duration) {
	server := redistest.Start(b)
	all := make([]*pawl.Client, clients)
	for i := range all {
		c, err := pawl.New(benchOpen(b, "redis://"+server.Addr), nil)
		noError(b, err)
		defer func() { _ = c.Close() }()
		all[i] = c
	}
	turns, longest := make([]int, clients), make([]time.Duration, clients)
	length := time.Duration(b.N) * max(work, time.Millisecond) // b.N is about the number of turns
	server.Do("CONFIG", "RESETSTAT")
	var done sync.WaitGroup
	b.ResetTimer()
	end := time.Now().Add(length)
	for i, c := range all {
		done.Go(func() {
			for time.Now().Before(end) {
				began := time.Now()
				lease, err := c.Mutex("job").Lock(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				longest[i] = max(longest[i], time.Since(began))
				time.Sleep(work)
				turns[i]++
				if err := lease.Release(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
	b.StopTimer()

	sum, squares, wait := 0.0, 0.0, time.Duration(0)
	for i, n := range turns {
		sum += float64(n)
		squares += float64(n) * float64(n)
		wait = max(wait, longest[i])
	}
	b.ReportMetric(float64((b.Elapsed()/time.Duration(sum) - work).Microseconds()), "µs-gap")
	b.ReportMetric(sum*sum/(float64(clients)*squares), "jain")
	b.ReportMetric(float64(wait.Milliseconds()), "ms-longest-wait")
	b.ReportMetric(scripts(server)/sum, "scripts/turn")
}

// scripts returns the number of scripts that have run since the statistics were reset.
func scripts(server *redistest.Server) float64 {
	stat := redistest.Field(server.Do("INFO", "commandstats"), "cmdstat_evalsha")
	calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
	n, _ := strconv.ParseFloat(calls, 64)
	return n
}
