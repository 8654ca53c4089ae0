package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// One cycle is an acquire and a release. The floor is the cost that no lock can beat on
// this server and this client: SET NX PX, then a script that compares and deletes. It has
// no queue, no fence, and no notification.
func BenchmarkCycle(b *testing.B) {
	ctx := context.Background()
	server := redistest.Start(b)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, PipelineMultiplex: -1, DisableCache: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	compare := rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	floor := func(name string) error {
		token := driver.NewToken()
		cmd := client.B().Set().Key(name).Value(rueidis.BinaryString(token[:])).Nx().PxMilliseconds(30000).Build()
		if err := client.Do(ctx, cmd).Error(); err != nil {
			return err
		}
		return compare.Exec(ctx, client, []string{name}, []string{rueidis.BinaryString(token[:])}).Error()
	}
	cycle := func(d driver.Driver) func(name string) error {
		return func(name string) error {
			c := driver.Claim{
				Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second,
				Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
			}
			if _, err := d.Acquire(ctx, c); err != nil {
				return err
			}
			return d.Release(ctx, driver.LeaseRef{Name: name, Token: c.Token})
		}
	}
	tracked := benchOpen(b, "redis://"+server.Addr)
	plain := benchOpen(b, "redis://"+server.Addr+"?tracking=false")
	locks, err := pawl.New(benchOpen(b, "redis://"+server.Addr), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	whole := func(name string) error {
		lease, err := locks.Mutex(name).Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	for _, goroutines := range []int{1, 64, 1000} {
		for _, way := range []struct {
			name  string
			cycle func(string) error
		}{{"floor", floor}, {"driver", cycle(tracked)}, {"untracked", cycle(plain)}, {"client", whole}} {
			b.Run(fmt.Sprintf("%s/%d", way.name, goroutines), func(b *testing.B) {
				run(b, goroutines, way.cycle)
			})
		}
	}
}

// run spreads b.N cycles over goroutines with names of their own.
func run(b *testing.B, goroutines int, cycle func(name string) error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for i := range goroutines {
		name := fmt.Sprintf("%s-%d", b.Name(), i)
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := cycle(name); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func benchOpen(b *testing.B, url string) driver.Driver {
	b.Helper()
	d, err := concrete(redislock.Open(context.Background(), url))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}
