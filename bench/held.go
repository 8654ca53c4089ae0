package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// trustedPart is the part of the TTL after which a client without a renewal reports the
// lease as lost, by default.
const trustedPart = 0.9

// heldLeases measures the cost of held and renewed leases for this process and for the
// server, and the greatest age of a lease at its renewal. Renewals are due after a third
// of the TTL.
func heldLeases(name string, leases int, duration time.Duration) scenario {
	const ttl = 10 * time.Second
	return scenario{
		name: name, description: fmt.Sprintf("%d leases of 10 s held by one client for %v", leases, duration), unit: "B/lease",
		otherFigures: []string{"goroutines", "requests/s", "client %core", "server %core", "oldest, % of its TTL", "lost"}, rounds: 1,
		fits: func(c contender) bool {
			return c.renews && (leases <= 1000 || c.name == "pawl" || c.engine == "redis" && leases <= 10_000)
		},
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			cl, err := c.open(s.address(), ttl)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			if err := lockAndUnlock(cl, "warm"); err != nil {
				return nil, err
			}
			goroutines, before := runtime.NumGoroutine(), heapBytes()
			all := make([]heldLock, leases)
			if err := in64Goroutines(leases, func(i int) (err error) {
				all[i], err = takeLock(cl, fmt.Sprint("held", i))
				return err
			}); err != nil {
				return nil, err
			}
			bytes := float64(heapBytes()-before) / float64(leases)
			clientCPU, serverCPU, calls := selfCPU(), s.cpu(), s.calls(c)
			left := minTimeLeft(all, duration)
			clientCPU, serverCPU, calls = selfCPU()-clientCPU, s.cpu()-serverCPU, s.calls(c)-calls
			lost := 0
			for _, h := range all {
				lost += h.lostCount()
			}
			out := figures{
				bytes, float64(runtime.NumGoroutine() - goroutines), float64(calls) / duration.Seconds(),
				100 * clientCPU.Seconds() / duration.Seconds(), 100 * serverCPU.Seconds() / duration.Seconds(),
				100 * (trustedPart - left.Seconds()/ttl.Seconds()), float64(lost),
			}
			if left < 0 {
				out[5] = math.NaN()
			}
			return out, in64Goroutines(leases, func(i int) error { _ = all[i].unlock(); return nil })
		},
	}
}

// in64Goroutines calls do n times, in 64 goroutines.
func in64Goroutines(n int, do func(i int) error) error {
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for g := range errs {
		wg.Go(func() {
			for i := g; i < n; i += len(errs) {
				if err := do(i); err != nil {
					errs[g] = err
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A heldLock is a lock that a client holds.
type heldLock struct {
	unlock func() error
	lost   func() <-chan struct{} // nil if the library does not notify holders
	end    func() time.Time       // returns the end of the lease; nil if the client does not know it
}

func takeLock(cl client, name string) (h heldLock, err error) {
	if p, ok := cl.(pawlLocker); ok {
		l, err := p.client.Mutex(name).Lock(context.Background())
		if err != nil {
			return h, err
		}
		return heldLock{func() error { return l.Release(context.Background()) }, l.Done, l.Deadline}, nil
	}
	h.unlock, h.lost, err = cl.lock(context.Background(), name)
	return h, err
}

func (h heldLock) lostCount() int {
	if h.lost == nil {
		return 0
	}
	select {
	case <-h.lost():
		return 1
	default:
		return 0
	}
}

// minTimeLeft polls up to a thousand leases for the duration. It returns the shortest
// time that a lease had left, or a negative value if that is unknown.
func minTimeLeft(all []heldLock, duration time.Duration) time.Duration {
	least := time.Duration(math.MaxInt64)
	for until := time.Now().Add(duration); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		for i := 0; i < len(all); i += 1 + len(all)/1001 {
			if all[i].end == nil {
				time.Sleep(time.Until(until))
				return -1
			}
			least = min(least, time.Until(all[i].end()))
		}
	}
	return max(least, 0)
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
