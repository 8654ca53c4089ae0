package redislock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
)

// BenchmarkCycle measures an acquire and a release. The floor is the least cost of a lock
// on this server with this client: SET NX PX, then a script that compares and deletes,
// without a queue, fences, or notifications.
func BenchmarkCycle(b *testing.B) {
	ctx := context.Background()
	server := redistest.Start(b)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, PipelineMultiplex: -1, DisableCache: true})
	noError(b, err)
	defer client.Close()
	releaseScript := rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	floor := func(name string) error {
		token := driver.NewToken()
		cmd := client.B().Set().Key(name).Value(rueidis.BinaryString(token[:])).Nx().PxMilliseconds(30000).Build()
		if err := client.Do(ctx, cmd).Error(); err != nil {
			return err
		}
		return releaseScript.Exec(ctx, client, []string{name}, []string{rueidis.BinaryString(token[:])}).Error()
	}
	cycle := func(d driver.Driver) func(string) error {
		return func(name string) error { return drivertest.Cycle(d, name) }
	}
	trackedDriver := openDriver(b, "redis://"+server.Addr)
	untrackedDriver := openDriver(b, "redis://"+server.Addr+"?tracking=false")
	locks, err := pawl.New(openDriver(b, "redis://"+server.Addr), nil)
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

// BenchmarkBesideHolders measures a step on a name with many holders. server-µs/op is the
// time of a step in the server, which runs all steps on one core.
func BenchmarkBesideHolders(b *testing.B) {
	server := redistest.Start(b)
	d := openDriver(b, "redis://"+server.Addr+"?tracking=false")
	drivertest.BenchmarkHolders(b, d, func(b *testing.B, step func()) {
		server.Do("CONFIG", "RESETSTAT")
		for b.Loop() {
			step()
		}
		b.ReportMetric(statistic(server, "cmdstat_evalsha:calls=", ",usec=")/float64(b.N), "server-µs/op")
	}, 1, 100, 1000, 10_000)
}

// BenchmarkWaitersCost measures how busy the server is while 200 clients wait and 1000
// permits are held. One op is one second.
func BenchmarkWaitersCost(b *testing.B) {
	server := redistest.Start(b)
	d := openDriver(b, "redis://"+server.Addr)
	for range 1000 {
		c := mutex("permits")
		c.Weight, c.Limit, c.TTL = 1, 1000, time.Hour
		gets(b, d, c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 200 {
		locks, err := pawl.New(openDriver(b, "redis://"+server.Addr), nil)
		noError(b, err)
		all.Go(func() {
			_, _ = locks.Semaphore("permits", 1000).Acquire(ctx, 1)
			_ = locks.Close()
		})
	}
	becomes(b, "all clients wait", func() bool {
		e, err := d.Inspect(ctx, "permits")
		return err == nil && len(e.Waiters) == 200
	})
	cpuSeconds := func() float64 {
		return statistic(server, "used_cpu_sys:", "") + statistic(server, "used_cpu_user:", "")
	}
	before := cpuSeconds()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric((cpuSeconds()-before)/b.Elapsed().Seconds()*100, "server-%core")
	cancel()
	all.Wait()
}

// statistic returns the number after field in the line of INFO that begins with
// linePrefix.
func statistic(server *redistest.Server, linePrefix, field string) float64 {
	for line := range strings.SplitSeq(server.Do("INFO", "everything"), "\r\n") {
		if rest, ok := strings.CutPrefix(line, linePrefix); ok {
			_, rest, _ = strings.Cut(rest, field)
			number, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.ParseFloat(number, 64)
			return n
		}
	}
	return 0
}
