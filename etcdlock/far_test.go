package etcdlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/etcdtest"
)

// A far client gets and keeps its locks beside a busy client that is near the servers,
// and that ticks before the far one has received the last tick.
func TestAFarClientBesideABusyNearOne(t *testing.T) {
	skipIfShort(t, "it waits for slow answers")
	t.Parallel()
	for _, latency := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, 1)
			near := openDriver(t, c.URL())
			stop := make(chan struct{})
			var busy sync.WaitGroup
			t.Cleanup(func() { close(stop); busy.Wait() })
			busy.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
						m := mutex(fmt.Sprint("near", i%10))
						if _, err := near.Acquire(ctx, m); err == nil {
							_ = near.Release(ctx, lease(m))
						}
					}
				}
			})
			p := startProxy(t, c)
			p.Far(latency)
			d := openDriver(t, "etcd://"+p.Addr)
			kept := mutex("kept")
			kept.TTL = 5 * time.Minute
			gets(t, d, kept)
			const cycles = 10
			began := time.Now()
			for range cycles {
				m := mutex("far")
				gets(t, d, m)
				keeps(t, d, kept)
				releases(t, d, m)
			}
			t.Logf("%d cycles with a renewal each, %.1f round trips each", cycles, time.Since(began).Seconds()/cycles/(2*latency).Seconds())
		})
	}
}
