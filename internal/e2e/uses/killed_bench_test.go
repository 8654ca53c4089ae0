package uses_test

import (
	"context"
	"slices"
	"testing"
	"time"
)

// BenchmarkNextLeader measures the time from kill -9 of the leading process until the
// next leader begins, in another process. The TTL is 2 s. ms-late is the time from the
// end of the dead leader's lease until the next leader begins. The worst result counts,
// because at the kill between two thirds of the TTL and all of it are left.
func BenchmarkNextLeader(b *testing.B) {
	const ttl = 2 * time.Second
	for _, tested := range backends {
		b.Run(tested.name, func(b *testing.B) {
			c := tested.client(b)
			var took, late []float64
			for i := range b.N {
				name := b.Name()
				first := tested.startProcess(b, "election", name, ttl)
				first.expect("works")
				led, ended := make(chan time.Time, 1), make(chan error, 1)
				go func() {
					ended <- c.Election(name).Run(background, func(context.Context) error {
						led <- time.Now()
						return nil
					})
				}()
				waitForWaiters(b, c, name, 1)
				time.Sleep(time.Duration(i%7) * 100 * time.Millisecond) // some time after a renewal
				left := entry(b, c, name).Holders[0].ExpiresIn
				read := time.Now()
				died := first.kill()
				at := receive(b, led, "the next leader")
				noError(b, <-ended)
				took = append(took, ms(at.Sub(died)))
				late = append(late, ms(at.Sub(read.Add(left))))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "ms-median")
			b.ReportMetric(slices.Max(took), "ms-worst")
			b.ReportMetric(median(late), "ms-late-median")
			b.ReportMetric(slices.Max(late), "ms-late-worst")
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
