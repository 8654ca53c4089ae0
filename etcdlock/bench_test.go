package etcdlock_test

import (
	"context"
	"fmt"
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
			noError(b, err)
			defer d.Close()
			drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return drivertest.Cycle(d, fmt.Sprint("own", i)) })
		})
		b.Run(fmt.Sprintf("concurrency.Mutex/%d", goroutines), func(b *testing.B) {
			s := session(b, client(b, c.Addrs()...))
			drivertest.BenchmarkCycles(b, goroutines, func(i int) error {
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
	noError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkHandOver is the time from a release to the grant of a client that waits
// elsewhere.
func BenchmarkHandOver(b *testing.B) {
	c := etcdtest.Start(b, 1, "--unsafe-no-fsync=false")
	b.Run("etcdlock", func(b *testing.B) {
		var two [2]*etcdlock.Driver
		var heard [2]chan driver.Signal
		for i := range two {
			two[i] = openDriver(b, c.URL())
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
		drivertest.ReportTimes(b, times(b.N, func(i int) time.Duration {
			waiter := queued(mutex(name))
			refused(b, two[(i+1)%2], waiter)
			began := time.Now()
			noError(b, two[i%2].Release(ctx, lease(holder)))
			for s := range heard[(i+1)%2] {
				if s.Token == waiter.Token {
					break
				}
			}
			holder = waiter
			return time.Since(began)
		}))
	})
	b.Run("concurrency.Mutex", func(b *testing.B) {
		var two [2]*concurrency.Session
		for i := range two {
			two[i] = session(b, client(b, c.Addrs()...))
		}
		name := fmt.Sprint("/job", time.Now().UnixNano())
		holder := concurrency.NewMutex(two[0], name)
		noError(b, holder.Lock(ctx))
		drivertest.ReportTimes(b, times(b.N, func(i int) time.Duration {
			waiter, got := concurrency.NewMutex(two[(i+1)%2], name), make(chan time.Time)
			go func() {
				if err := waiter.Lock(context.Background()); err != nil {
					b.Error(err)
				}
				got <- time.Now()
			}()
			time.Sleep(10 * time.Millisecond) // until it waits
			began := time.Now()
			noError(b, holder.Unlock(ctx))
			holder = waiter
			return (<-got).Sub(began)
		}))
	})
}

func times(n int, one func(i int) time.Duration) (took []time.Duration) {
	for i := range n {
		took = append(took, one(i))
	}
	return took
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, etcdtest.Start(b, 1).URL()), nil, 1, 100, 1000)
}

// BenchmarkOneName is 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := etcdtest.Start(b, 1).URL()
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}
