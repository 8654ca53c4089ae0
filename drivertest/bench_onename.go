package drivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// BenchmarkOneName lets 64 clients compete for one name with leases of a second, and
// counts the leases, and the lost ones. An op is a minute. In Brief the clients release
// at once. In Kept they hold the name for three seconds, so they must renew each lease.
func BenchmarkOneName(b *testing.B, open func(b *testing.B) driver.Driver) {
	b.Run("Brief", func(b *testing.B) { benchmarkOneName(b, open, 0) })
	b.Run("Kept", func(b *testing.B) { benchmarkOneName(b, open, 3*time.Second) })
}

func benchmarkOneName(b *testing.B, open func(b *testing.B) driver.Driver, work time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var granted, lost, failed atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		locks, err := pawl.New(open(b), &pawl.Options{TTL: time.Second})
		noError(b, err)
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := locks.Mutex("one").Lock(ctx)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					failed.Add(1)
					time.Sleep(100 * time.Millisecond)
				default:
					granted.Add(1)
					select {
					case <-lease.Done():
					case <-time.After(work):
					}
				}
				if lease == nil {
					continue
				}
				if lease.Err() != nil {
					lost.Add(1)
				}
				_ = lease.Release(context.WithoutCancel(ctx))
			}
			_ = locks.Close()
		})
	}
	for b.Loop() {
		time.Sleep(time.Minute)
	}
	cancel()
	all.Wait()
	b.ReportMetric(float64(granted.Load()), "leases")
	b.ReportMetric(float64(lost.Load()), "lost")
	b.ReportMetric(float64(failed.Load()), "failed")
}
