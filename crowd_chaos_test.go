package pawl_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

var errBug = errors.New("a bug")

// unlucky is what happens to the crowd of a process: its driver and its Observer fail and
// panic, and each of those who wait gives up at any time.
type unlucky struct {
	mu   sync.Mutex
	dice *rand.Rand
}

func (u *unlucky) roll(n int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dice.IntN(n)
}

// step takes up to 300 µs, and fails or panics now and then.
func (u *unlucky) step(op string) error {
	time.Sleep(time.Duration(u.roll(300)) * time.Microsecond)
	switch r := u.roll(100); {
	case r < 3 && op == "acquire": // the others may be sent by the client itself, where a panic ends the program
		panic(errBug)
	case r < 6:
		return errNet
	}
	return nil
}

// visit locks once, in some way, and works for a while. What panics is recovered.
func (u *unlucky) visit(t *testing.T, c *pawl.Client, b *believers) {
	defer func() {
		if r := recover(); r != nil && r != errBug {
			panic(r)
		}
	}()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if u.roll(2) == 0 {
		time.AfterFunc(time.Duration(u.roll(5000))*time.Microsecond, cancel)
	}
	var l *pawl.Lease
	var err error
	weight := driver.Exclusive
	switch r := u.roll(20); {
	case r == 0:
		l, err = c.Mutex("x").TryLock(ctx)
	case r == 1:
		weight = 1
		l, err = c.RWMutex("x").RLock(ctx)
	case r == 2:
		l, err = c.Mutex("x", pawl.WithTTL(time.Minute)).Lock(ctx)
	default:
		l, err = c.Mutex("x").Lock(ctx)
	}
	if err != nil {
		return
	}
	b.mu.Lock()
	b.leases = append(b.leases, believer{l, weight, driver.Unlimited})
	b.mu.Unlock()
	b.look(t)
	time.Sleep(time.Duration(u.roll(500)) * time.Microsecond)
	b.look(t)
	if err := l.Release(ctx); err != nil && !errors.Is(err, pawl.ErrLost) && !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("release: %v", err)
	}
}

// Whatever ends the waiting of one in a local queue, the others go on, and nothing is left.
func TestCrowdOfAProcessGoesOnWhateverEndsTheWaitingOfSome(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(t *testing.T, w *world) {
			var b believers
			var wg sync.WaitGroup
			var clients []*pawl.Client
			for p := range uint64(2) {
				u := &unlucky{dice: rand.New(rand.NewPCG(seed, p))}
				c, f := w.client(&pawl.Options{
					TTL: time.Second, LocalHandoff: time.Duration(1+seed%10) * time.Millisecond,
					Observer: &pawl.Observer{Queued: func(pawl.QueuedEvent) {
						if u.roll(50) == 0 {
							panic(errBug)
						}
					}},
				})
				f.set(u.step, u.step)
				clients = append(clients, c)
				for range 15 {
					wg.Go(func() {
						for range 20 {
							u.visit(t, c, &b)
						}
					})
				}
				if seed%2 == p {
					time.AfterFunc(time.Duration(u.roll(100))*time.Millisecond, func() { _ = c.Close(background) })
				}
			}
			stuck := time.AfterFunc(time.Hour, func() { panic("somebody still waits") })
			wg.Wait()
			stuck.Stop()
			time.Sleep(time.Minute)
			w.free("x")
			for _, c := range clients {
				if n := c.Gates() + c.Inboxes() + c.Leases(); n > 0 {
					t.Errorf("seed %d: %d gates, %d inboxes, %d leases are left", seed, c.Gates(), c.Inboxes(), c.Leases())
				}
			}
		})
	}
}
