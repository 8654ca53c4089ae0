package etcdlock_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/etcdtest"
)

// far returns the address of a server that is so far away, one way.
func far(t testing.TB, addr string, away time.Duration) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	all.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
			if err != nil {
				_ = here.Close()
				continue
			}
			mu.Lock()
			open = append(open, here, there)
			mu.Unlock()
			travel(&all, here, there, away)
			travel(&all, there, here, away)
		}
	})
	return l.Addr().String()
}

// travel passes on what one sends to the other, so much later.
func travel(all *sync.WaitGroup, from, to net.Conn, away time.Duration) {
	type piece struct {
		bytes []byte
		at    time.Time
	}
	way := make(chan piece, 10_000)
	all.Go(func() {
		defer close(way)
		for {
			b := make([]byte, 64<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			way <- piece{b[:n], time.Now().Add(away)}
		}
	})
	all.Go(func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.at))
			_, _ = to.Write(p.bytes) // after an error the rest is lost
		}
	})
}

// A far client gets and keeps its locks beside a busy client that is near the servers,
// and that ticks before the far one has received the last tick.
func TestAFarClientBesideABusyNearOne(t *testing.T) {
	nightly(t, "it waits for slow answers")
	t.Parallel()
	for _, away := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(away.String(), func(t *testing.T) {
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
			d := openDriver(t, "etcd://"+far(t, c.Members[0].Addr, away))
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
			t.Logf("%d cycles with a renewal each, %.1f round trips each", cycles, time.Since(began).Seconds()/cycles/(2*away).Seconds())
		})
	}
}
