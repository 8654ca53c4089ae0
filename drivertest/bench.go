package drivertest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// BenchmarkHolders measures the cost of a step on a name with each of these numbers of
// holders. If the backend refuses that many holders, the benchmark is skipped, with the
// error.
//
// measure runs one step as often as b says, and may report metrics of its own. nil means
// a bare b.Loop.
func BenchmarkHolders(b *testing.B, d driver.Driver, measure func(b *testing.B, step func()), holders ...int) {
	if measure == nil {
		measure = func(b *testing.B, step func()) {
			for b.Loop() {
				step()
			}
		}
	}
	for _, n := range holders {
		beside := &crowded{b: b, d: d, name: fmt.Sprintf("held-by-%d", n), n: n}
		if err := beside.fill(); err != nil {
			b.Run(fmt.Sprintf("all/%d", n), func(b *testing.B) { b.Skip(err) })
			continue
		}
		for _, step := range beside.steps() {
			b.Run(fmt.Sprintf("%s/%d", step.name, n), func(b *testing.B) {
				beside.b = b
				step.run()
				measure(b, step.run)
			})
		}
	}
}

// crowded is a name with many holders.
type crowded struct {
	b    *testing.B
	d    driver.Driver
	name string
	n    int
	last driver.Claim // of a holder
}

func (c *crowded) permit(limit int) driver.Claim {
	return driver.Claim{
		Name: c.name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: 1, Limit: limit, TTL: time.Hour, QueueTTL: time.Hour,
	}
}

// fill grants all permits, many at the same time, because a driver may share requests.
func (c *crowded) fill() error {
	c.last = c.permit(c.n)
	if _, err := c.d.Acquire(c.b.Context(), c.last); err != nil {
		return err
	}
	failed := make([]error, min(c.n-1, 250))
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() {
			for done := i + 1; done < c.n && failed[i] == nil; done += len(failed) {
				_, failed[i] = c.d.Acquire(c.b.Context(), c.permit(c.n))
			}
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *crowded) refused(claim driver.Claim) {
	if _, err := c.d.Acquire(c.b.Context(), claim); !errors.Is(err, driver.ErrHeld) {
		c.b.Fatalf("Acquire: %v; want it refused", err)
	}
}

type benchmarkStep struct {
	name string
	run  func()
}

// steps must run in this order: once the writer waits, it stays in the queue.
func (c *crowded) steps() []benchmarkStep {
	writer, behind := c.permit(driver.Unlimited), c.permit(driver.Unlimited)
	writer.Weight, writer.Queue, behind.Queue = driver.Exclusive, true, true
	return []benchmarkStep{
		{"refused", func() { c.refused(c.permit(c.n)) }},
		{"renewal", func() {
			answers, err := c.d.Renew(c.b.Context(), []driver.LeaseRef{{Name: c.name, Token: c.last.Token, TTL: c.last.TTL}})
			if err = errors.Join(append(answers, err)...); err != nil {
				c.b.Fatal(err)
			}
		}},
		{"queue-and-release-that-passes-on", func() {
			next := c.permit(c.n)
			next.Queue = true
			c.refused(next)
			if err := c.d.Release(c.b.Context(), driver.LeaseRef{Name: c.name, Token: c.last.Token, TTL: c.last.TTL}); err != nil {
				c.b.Fatal(err)
			}
			c.last = next
		}},
		{"keep-alive", func() { c.refused(writer) }},
		{"reader-behind-writer", func() { c.refused(behind) }},
	}
}
