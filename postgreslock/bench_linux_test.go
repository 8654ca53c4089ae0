package postgreslock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// BenchmarkWaiting500 measures what 500 waiting clients, each with its own connections as
// a process has, cost the server: in hundredths of a core, over half a minute.
func BenchmarkWaiting500(b *testing.B) {
	server := pgtest.Start(b, "max_connections=1200", "fsync=on")
	const waiters = 500
	holder := client(b, server.URL("postgres"))
	for i := range waiters {
		must(holder.Mutex(fmt.Sprintf("job %d", i), pawl.WithTTL(10*time.Minute)).Lock(ctx))(b)
	}
	var ended atomic.Int64
	for i := range waiters {
		waiter := client(b, server.URL("postgres")+"?pool_max_conns=1")
		go func() {
			_, _ = waiter.Mutex(fmt.Sprintf("job %d", i)).Lock(ctx) // until its client is closed
			ended.Add(1)
		}()
	}
	time.Sleep(8 * time.Second) // until all have begun to listen
	for b.Loop() {
		began, worked := time.Now(), server.CPU()
		time.Sleep(30 * time.Second)
		b.ReportMetric(100*float64(server.CPU()-worked)/float64(time.Since(began)), "%-of-a-core")
	}
	if n := ended.Load(); n > 0 {
		b.Errorf("%d wait no more", n)
	}
}
