package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Several processes claim a few names in all ways, over links that lose requests and
// replies, and that are sometimes slower than any deadline. Err must not be nil for two
// leases that exclude each other, and nothing may be left at the end.
func TestLeasesNeverOverlapOverAFaultyNetwork(t *testing.T) {
	ttls := []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}
	for seed := range uint64(10) {
		inWorld(t, func(t *testing.T, w *world) {
			var names [2]heldLeases
			var clients []*pawl.Client
			var links []*faulty
			var wg sync.WaitGroup
			for p := range uint64(3) {
				c, f := w.client(&pawl.Options{QueueTTL: ttls[1+(seed+p)%3], RetryFor: time.Second, HandoffWindow: time.Duration(seed%3) * 5 * time.Millisecond})
				var mu sync.Mutex
				dice := rand.New(rand.NewPCG(seed, p))
				fault := func(string) error {
					mu.Lock()
					n, d := dice.IntN(100), time.Duration(dice.ExpFloat64()*float64(2*time.Millisecond))
					if dice.IntN(50) == 0 {
						d += time.Duration(dice.Int64N(int64(time.Second)))
					}
					mu.Unlock()
					time.Sleep(d)
					if n < 10 {
						return errNet
					}
					return nil
				}
				f.set(fault, fault)
				clients, links = append(clients, c), append(links, f)
				for g := range uint64(6) {
					wg.Go(func() {
						dice := rand.New(rand.NewPCG(seed, 100+p*10+g))
						for range 30 {
							n := dice.IntN(2)
							name, held := []string{"x", "y"}[n], &names[n]
							options := []pawl.LockOption{pawl.WithTTL(ttls[dice.IntN(4)])}
							if dice.IntN(4) == 0 {
								options = append(options, pawl.WithMaxHold(ttls[dice.IntN(4)]))
							}
							ctx, cancel := context.WithTimeout(background, time.Duration(dice.Int64N(int64(3*time.Second))))
							var l *pawl.Lease
							var err error
							weight, limit := driver.Exclusive, driver.Unlimited
							switch dice.IntN(6) {
							case 0:
								weight = 1
								l, err = c.RWMutex(name, options...).RLock(ctx)
							case 1:
								weight, limit = 1, 2
								l, err = c.Semaphore(name, 2, options...).Acquire(ctx, 1)
							case 2:
								l, err = c.Mutex(name, options...).TryLock(ctx)
							default:
								l, err = c.Mutex(name, options...).Lock(ctx)
							}
							cancel()
							if err != nil {
								if !errors.Is(err, pawl.ErrHeld) && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
									t.Errorf("acquire: %v", err)
								}
								continue
							}
							held.mu.Lock()
							held.leases = append(held.leases, heldLease{l, weight, limit})
							held.mu.Unlock()
							for range dice.IntN(20) {
								held.check(t)
								time.Sleep(time.Duration(dice.Int64N(int64(10 * time.Millisecond))))
							}
							held.check(t)
							if err := l.Release(background); err != nil && !errors.Is(err, pawl.ErrLost) && !errors.Is(err, pawl.ErrUnavailable) {
								t.Errorf("release: %v", err)
							}
						}
					})
				}
			}
			wg.Wait()
			for _, f := range links {
				f.set(nil, nil)
			}
			time.Sleep(10 * time.Second)
			w.wantFree("x")
			w.wantFree("y")
			for _, c := range clients {
				wantNothingLeft(t, c)
			}
		})
	}
}

// If a waiter leaves the local queue, for any reason, the others go on, and nothing is
// left.
func TestLocalWaitersGoOnWhenOthersStopWaiting(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(t *testing.T, w *world) {
			var b heldLeases
			var wg sync.WaitGroup
			var clients []*pawl.Client
			for p := range uint64(2) {
				u := &randomFaults{&dice{rng: rand.New(rand.NewPCG(seed, p))}}
				c, f := w.client(&pawl.Options{
					TTL: time.Second, HandoffWindow: time.Duration(1+seed%10) * time.Millisecond,
					Observer: &pawl.Observer{Queued: func(pawl.QueuedEvent) {
						if u.n(50) == 0 {
							panic(errBug)
						}
					}},
				})
				f.set(u.step, u.step)
				clients = append(clients, c)
				for range 15 {
					wg.Go(func() {
						for range 20 {
							u.lockOnce(t, c, &b)
						}
					})
				}
				if seed%2 == p {
					time.AfterFunc(time.Duration(u.n(100))*time.Millisecond, func() { _ = c.Close() })
				}
			}
			stuck := time.AfterFunc(time.Hour, func() { panic("a call still waits") })
			wg.Wait()
			stuck.Stop()
			time.Sleep(time.Minute)
			w.wantFree("x")
			for _, c := range clients {
				wantNothingLeft(t, c)
			}
		})
	}
}

// The backend, the network and the users' functions fail, and the client is closed in
// different ways. The Observer still gets exactly one Released or Lost for each lease
// that was acquired, Do returns each loss, and nothing is left behind.
func TestEachLeaseEndsOnceOverAHostileDriver(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { newHostility(t, w, seed).run() })
		})
	}
}
