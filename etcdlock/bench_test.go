package etcdlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// BenchmarkCycle is an acquire and a release, by so many goroutines on names of their
// own, beside etcd's own mutex on the same server.
func BenchmarkCycle(b *testing.B) {
	c := etcdtest.Start(b, 1, "--unsafe-no-fsync=false")
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprintf("etcdlock/%d", goroutines), func(b *testing.B) {
			d, err := concrete(etcdlock.New(client(b, c.Addrs()...), nil))
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			each(b, goroutines, func(i int) error {
				m := mutex(fmt.Sprint("own", i))
				if _, err := d.Acquire(ctx, m); err != nil {
					return err
				}
				return d.Release(ctx, lease(m))
			})
		})
		b.Run(fmt.Sprintf("concurrency.Mutex/%d", goroutines), func(b *testing.B) {
			s := session(b, client(b, c.Addrs()...))
			each(b, goroutines, func(i int) error {
				m := concurrency.NewMutex(s, fmt.Sprint("/own/", i))
				if err := m.Lock(ctx); err != nil {
					return err
				}
				return m.Unlock(ctx)
			})
		})
	}
}

func session(b *testing.B, client *clientv3.Client) *concurrency.Session {
	b.Helper()
	s, err := concurrency.NewSession(client)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// each runs b.N cycles in so many goroutines, and returns how many there were in a
// second.
func each(b *testing.B, goroutines int, cycle func(i int) error) {
	b.Helper()
	for i := range goroutines { // new names cost more
		if err := cycle(i); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := cycle(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

// BenchmarkHandOver is the time from a release to the grant of a client that waits
// elsewhere.
func BenchmarkHandOver(b *testing.B) {
	c := etcdtest.Start(b, 1, "--unsafe-no-fsync=false")
	b.Run("etcdlock", func(b *testing.B) {
		var two [2]*etcdlock.Driver
		var heard [2]chan driver.Signal
		for i := range two {
			two[i] = start(b, c.URL())
			heard[i] = make(chan driver.Signal, 100)
			two[i].Listen(func(s driver.Signal) {
				if s.Kind == driver.SignalGranted {
					heard[i] <- s
				}
			})
		}
		name := fmt.Sprint("job", time.Now().UnixNano()) // it is run more than once
		holder := mutex(name)
		gets(b, two[0], holder)
		handOver(b, func(i int) time.Duration {
			waiter := queued(mutex(name))
			refused(b, two[(i+1)%2], waiter)
			began := time.Now()
			if err := two[i%2].Release(ctx, lease(holder)); err != nil {
				b.Fatal(err)
			}
			for s := range heard[(i+1)%2] {
				if s.Token == waiter.Token {
					break
				}
			}
			holder = waiter
			return time.Since(began)
		})
	})
	b.Run("concurrency.Mutex", func(b *testing.B) {
		var two [2]*concurrency.Session
		for i := range two {
			two[i] = session(b, client(b, c.Addrs()...))
		}
		name := fmt.Sprint("/job", time.Now().UnixNano())
		holder := concurrency.NewMutex(two[0], name)
		if err := holder.Lock(ctx); err != nil {
			b.Fatal(err)
		}
		handOver(b, func(i int) time.Duration {
			waiter, got := concurrency.NewMutex(two[(i+1)%2], name), make(chan time.Time)
			go func() {
				if err := waiter.Lock(context.Background()); err != nil {
					b.Error(err)
				}
				got <- time.Now()
			}()
			time.Sleep(10 * time.Millisecond) // until it waits
			began := time.Now()
			if err := holder.Unlock(ctx); err != nil {
				b.Fatal(err)
			}
			holder = waiter
			return (<-got).Sub(began)
		})
	})
}

func handOver(b *testing.B, one func(i int) time.Duration) {
	b.Helper()
	var all []time.Duration
	for i := range b.N {
		all = append(all, one(i))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, start(b, etcdtest.Start(b, 1).URL()), nil, 1, 100, 1000)
}

// BenchmarkOneName is 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := etcdtest.Start(b, 1).URL()
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}
