package redislock_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
)

// BenchmarkBesideHolders measures a step on a name with many holders. server-µs/op is the
// time of a step in the server, which runs all steps on one core.
func BenchmarkBesideHolders(b *testing.B) {
	server := redistest.Start(b)
	d := benchOpen(b, "redis://"+server.Addr+"?tracking=false")
	drivertest.BenchmarkHolders(b, d, func(b *testing.B, step func()) {
		server.Do("CONFIG", "RESETSTAT")
		for b.Loop() {
			step()
		}
		b.ReportMetric(statistic(server, "cmdstat_evalsha:calls=", ",usec=")/float64(b.N), "server-µs/op")
	}, 1, 100, 1000, 10_000)
}

// 200 clients wait while 1000 permits are held. One op is one second.
func BenchmarkWaitersCost(b *testing.B) {
	server := redistest.Start(b)
	d := benchOpen(b, "redis://"+server.Addr)
	for range 1000 {
		c := mutex("permits")
		c.Weight, c.Limit, c.TTL = 1, 1000, time.Hour
		gets(b, d, c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 200 {
		locks, err := pawl.New(benchOpen(b, "redis://"+server.Addr), nil)
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

// statistic returns a number of INFO: the one after field, in the line that begins with
// line.
func statistic(server *redistest.Server, line, field string) float64 {
	for text := range strings.SplitSeq(server.Do("INFO", "everything"), "\r\n") {
		if rest, ok := strings.CutPrefix(text, line); ok {
			_, rest, _ = strings.Cut(rest, field)
			number, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.ParseFloat(number, 64)
			return n
		}
	}
	return 0
}
