package redislock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// One cycle is an acquire and a release. The floor is the least cost of a lock on this
// server with this client: SET NX PX, then a script that compares and deletes, without a
// queue, fences, or notifications.
func BenchmarkCycle(b *testing.B) {
	ctx := context.Background()
	server := redistest.Start(b)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, PipelineMultiplex: -1, DisableCache: true})
	noError(b, err)
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
	cycle := func(d driver.Driver) func(string) error {
		return func(name string) error { return drivertest.Cycle(d, name) }
	}
	trackedDriver := benchOpen(b, "redis://"+server.Addr)
	untrackedDriver := benchOpen(b, "redis://"+server.Addr+"?tracking=false")
	locks, err := pawl.New(benchOpen(b, "redis://"+server.Addr), nil)
	noError(b, err)
	defer func() { _ = locks.Close() }()
	throughClient := func(name string) error {
		lease, err := locks.Mutex(name).Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	for _, goroutines := range []int{1, 64, 1000} {
		for _, bench := range []struct {
			name  string
			cycle func(string) error
		}{{"floor", floor}, {"driver", cycle(trackedDriver)}, {"untracked", cycle(untrackedDriver)}, {"client", throughClient}} {
			b.Run(fmt.Sprintf("%s/%d", bench.name, goroutines), func(b *testing.B) {
				drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return bench.cycle(fmt.Sprintf("%s-%d", b.Name(), i)) })
			})
		}
	}
}

func benchOpen(b *testing.B, url string) driver.Driver {
	b.Helper()
	d, err := asDriver(redislock.Open(context.Background(), url))
	noError(b, err)
	b.Cleanup(func() { _ = d.Close() })
	return d
}
