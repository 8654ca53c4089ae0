package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

var noError = basictest.NoError

// BenchmarkHolders measures the cost of a step on a name with each of these numbers of
// holders. It skips a number that the backend refuses, with the error.
//
// measure runs one step as often as b says, and may report metrics of its own. nil means
// a bare b.Loop.
func BenchmarkHolders(b *testing.B, d driver.Driver, measure func(b *testing.B, step func()), counts ...int) {
	if measure == nil {
		measure = func(b *testing.B, step func()) {
			for b.Loop() {
				step()
			}
		}
	}
	for _, n := range counts {
		held := &heldName{b: b, d: d, name: fmt.Sprintf("held-by-%d", n), n: n}
		if err := held.fill(); err != nil {
			b.Run(fmt.Sprintf("all/%d", n), func(b *testing.B) { b.Skip(err) })
			continue
		}
		for _, step := range held.steps() {
			b.Run(fmt.Sprintf("%s/%d", step.name, n), func(b *testing.B) {
				held.b = b
				step.run()
				measure(b, step.run)
			})
		}
	}
}

// heldName is a name with many holders.
type heldName struct {
	b    *testing.B
	d    driver.Driver
	name string
	n    int
	last driver.Claim // the claim of one holder
}

func (c *heldName) permit(limit int) driver.Claim {
	return driver.Claim{
		Name: c.name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: 1, Limit: limit, TTL: time.Hour, QueueTTL: time.Hour,
	}
}

// fill acquires all permits, many at the same time, because a driver may share requests.
func (c *heldName) fill() error {
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

func (c *heldName) wantHeld(claim driver.Claim) {
	if _, err := c.d.Acquire(c.b.Context(), claim); !errors.Is(err, driver.ErrHeld) {
		c.b.Fatalf("Acquire: %v; want it refused", err)
	}
}

type benchmarkStep struct {
	name string
	run  func()
}

// steps returns the steps in their order: once the writer waits, it stays in the queue.
func (c *heldName) steps() []benchmarkStep {
	writer, behind := c.permit(driver.Unlimited), c.permit(driver.Unlimited)
	writer.Weight, writer.Queue, behind.Queue = driver.Exclusive, true, true
	return []benchmarkStep{
		{"refused", func() { c.wantHeld(c.permit(c.n)) }},
		{"renewal", func() {
			answers, err := c.d.Renew(c.b.Context(), []driver.LeaseRef{{Name: c.name, Token: c.last.Token, TTL: c.last.TTL}})
			if err = errors.Join(append(answers, err)...); err != nil {
				c.b.Fatal(err)
			}
		}},
		{"queue-and-release-that-passes-on", func() {
			next := c.permit(c.n)
			next.Queue = true
			c.wantHeld(next)
			noError(c.b, c.d.Release(c.b.Context(), driver.LeaseRef{Name: c.name, Token: c.last.Token, TTL: c.last.TTL}))
			c.last = next
		}},
		{"keep-alive", func() { c.wantHeld(writer) }},
		{"reader-behind-writer", func() { c.wantHeld(behind) }},
	}
}

// BenchmarkCycles runs b.N cycles in goroutines, each with its number as i, for a name of
// its own. One cycle of each runs before the measurement, because new names cost more.
func BenchmarkCycles(b *testing.B, goroutines int, cycle func(i int) error) {
	b.ReportAllocs()
	var left atomic.Int64
	run := func(i int) {
		if err := cycle(i); err != nil {
			b.Error(err)
			left.Store(0)
		}
	}
	for i := range goroutines {
		run(i)
	}
	left.Store(int64(b.N))
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				run(i)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func exclusive(name string) driver.Claim {
	c := (&heldName{name: name}).permit(driver.Unlimited)
	c.Weight = driver.Exclusive
	return c
}

// Cycle acquires and releases a name.
func Cycle(d driver.Driver, name string) error {
	c := exclusive(name)
	if _, err := d.Acquire(context.Background(), c); err != nil {
		return err
	}
	return d.Release(context.Background(), driver.LeaseRef{Name: name, Token: c.Token})
}

// BenchmarkRenew renews a thousand leases at once.
func BenchmarkRenew(b *testing.B, d driver.Driver) {
	var leases []driver.LeaseRef
	for i := range 1000 {
		c := exclusive(fmt.Sprint("renewed ", i))
		if _, err := d.Acquire(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		leases = append(leases, driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL})
	}
	for b.Loop() {
		answers, err := d.Renew(b.Context(), leases)
		if err = errors.Join(append(answers, err)...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "leases/s")
}
