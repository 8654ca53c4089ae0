package redislock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// What a step costs beside many holders: µs/step is the server's own time, of which there
// is one core for all.
func BenchmarkBesideHolders(b *testing.B) {
	server := redistest.Start(b)
	d := benchOpen(b, "redis://"+server.Addr+"?tracking=false")
	for _, holders := range []int{1, 100, 1000, 10_000} {
		permit := func(name string) driver.Claim {
			c := mutex(name)
			c.Weight, c.Limit, c.TTL, c.QueueTTL = 1, holders, time.Hour, time.Hour
			return c
		}
		crowd := func(name string) {
			for range holders {
				gets(b, d, permit(name))
			}
		}
		tries, waits, turns := fmt.Sprint("tries-", holders), fmt.Sprint("waits-", holders), fmt.Sprint("turns-", holders)
		crowd(tries)
		crowd(waits)
		crowd(turns)
		writer, behind := queued(waits), permit(waits)
		writer.QueueTTL, behind.Limit, behind.Queue = time.Hour, driver.Unlimited, true
		_, _ = d.Acquire(ctx, writer)
		last := permit(turns)
		last.Limit++
		gets(b, d, last)
		for _, step := range []struct {
			name string
			run  func()
		}{
			{"refused", func() { _, _ = d.Acquire(ctx, permit(tries)) }},
			{"keep-alive", func() { _, _ = d.Acquire(ctx, writer) }},
			{"reader-behind-writer", func() { _, _ = d.Acquire(ctx, behind) }},
			{"renewal", func() { renews(b, d, last) }},
			{"queue-and-release-that-passes-on", func() {
				next := permit(turns)
				next.Limit, next.Queue = holders+1, true
				_, _ = d.Acquire(ctx, next)
				releases(b, d, last)
				last = next
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", step.name, holders), func(b *testing.B) {
				step.run() // the server knows the scripts then
				server.Do("CONFIG", "RESETSTAT")
				for b.Loop() {
					step.run()
				}
				b.ReportMetric(statistic(server, "cmdstat_evalsha:calls=", ",usec=")/float64(b.N), "server-µs/op")
			})
		}
	}
}

// 200 clients wait for one of 1000 permits that nobody releases. An op is a second.
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
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			_, _ = locks.Semaphore("permits", 1000).Acquire(ctx, 1)
			_ = locks.Close(context.Background())
		})
	}
	for {
		if e, err := d.Inspect(ctx, "permits"); err == nil && len(e.Waiters) == 200 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	used := func() float64 {
		return statistic(server, "used_cpu_sys:", "") + statistic(server, "used_cpu_user:", "")
	}
	before := used()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric((used()-before)/b.Elapsed().Seconds()*100, "server-%core")
	cancel()
	all.Wait()
}

// statistic is a number of INFO, behind these words of a line.
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
