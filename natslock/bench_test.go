package natslock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/natstest"
)

// servers are the servers to measure on: one server, and a cluster.
func servers(b *testing.B, f func(b *testing.B, s *natstest.Server, query string, replicas int)) {
	b.Run("server", func(b *testing.B) { f(b, natstest.Start(b, ""), "?replicas=1", 1) })
	b.Run("cluster", func(b *testing.B) {
		nodes := natstest.StartCluster(b, 3)
		f(b, nodes[0], "?replicas=3", 3)
	})
}

// One cycle is an acquire and a release. The floor is the cost that no lock can beat on
// this server: two writes of a key-value bucket that compare the revision. As people
// write it by hand, it is a Create and a Delete. Neither has a queue, a fence, or an
// expiry.
func BenchmarkCycle(b *testing.B) {
	servers(b, func(b *testing.B, s *natstest.Server, query string, replicas int) {
		d := openDriver(b, "nats://"+s.Addr+query)
		_, js := connect(b, s)
		kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "floor", Replicas: replicas})
		noError(b, err)
		var mu sync.Mutex
		revisions := map[string]uint64{}
		update := func(name string) error {
			mu.Lock()
			r := revisions[name]
			mu.Unlock()
			for range 2 {
				next, err := kv.Update(ctx, name, []byte("0123456789abcdef0123456789abcdef"), r)
				for err != nil { // a cluster answers now and then that the revision is another one
					next, err = kv.Put(ctx, name, []byte("0123456789abcdef0123456789abcdef"))
				}
				r = next
			}
			mu.Lock()
			defer mu.Unlock()
			revisions[name] = r
			return nil
		}
		create := func(name string) error {
			r, err := kv.Create(ctx, "c"+name, []byte("0123456789abcdef0123456789abcdef"))
			if err == nil {
				err = kv.Delete(ctx, "c"+name, jetstream.LastRevision(r))
			}
			if err != nil { // the same
				err = kv.Delete(ctx, "c"+name)
			}
			return err
		}
		cycle := func(name string) error { return drivertest.Cycle(d, name) }
		for _, goroutines := range []int{1, 64} {
			for name, f := range map[string]func(string) error{"floor": update, "create-delete": create, "pawl": cycle} {
				b.Run(fmt.Sprintf("goroutines=%d/%s", goroutines, name), func(b *testing.B) {
					drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return f(fmt.Sprint("n", i)) })
				})
			}
		}
	})
}

// Two processes hand a name to and fro. The benchmark measures the time from the call
// that releases it to the return of the call that waits.
func BenchmarkHandOver(b *testing.B) {
	servers(b, func(b *testing.B, s *natstest.Server, query string, _ int) {
		var both [2]*pawl.Client
		for i := range both {
			c, err := pawl.New(openDriver(b, "nats://"+s.Addr+query), nil)
			noError(b, err)
			defer c.Close()
			both[i] = c
		}
		var took []time.Duration
		held, err := both[0].Mutex("n").Lock(ctx)
		noError(b, err)
		b.ResetTimer()
		for i := range b.N {
			got := make(chan *pawl.Lease, 1)
			go func() {
				l, err := both[(i+1)%2].Mutex("n").Lock(ctx)
				if err != nil {
					b.Error(err)
				}
				got <- l
			}()
			waits(b, both[0])
			began := time.Now()
			noError(b, held.Release(ctx))
			if held = <-got; held == nil {
				return
			}
			took = append(took, time.Since(began))
		}
		noError(b, held.Release(ctx))
		drivertest.ReportTimes(b, took)
	})
}

// waits waits until a claim is in the queue.
func waits(b *testing.B, c *pawl.Client) {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		e, err := c.Inspect(within, "n")
		noError(b, err)
		if len(e.Waiters) > 0 {
			return
		}
	}
}

// BenchmarkRenew renews a thousand leases in one call.
func BenchmarkRenew(b *testing.B) {
	servers(b, func(b *testing.B, s *natstest.Server, query string, _ int) {
		drivertest.BenchmarkRenew(b, openDriver(b, "nats://"+s.Addr+query))
	})
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, "nats://"+natstest.Start(b, "").Addr), nil, 1, 100, 1000)
}

// BenchmarkOneName is 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := "nats://" + natstest.Start(b, "").Addr
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	servers(b, func(b *testing.B, s *natstest.Server, query string, _ int) {
		drivertest.BenchmarkAll(b, openDriver(b, "nats://"+s.Addr+query))
	})
}
