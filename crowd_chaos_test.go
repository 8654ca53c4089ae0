package pawl_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// Whatever ends the waiting of one in a local queue, the others go on, and nothing is left.
func TestCrowdOfAProcessGoesOnWhateverEndsTheWaitingOfSome(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(t *testing.T, w *world) {
			var b believers
			var wg sync.WaitGroup
			var clients []*pawl.Client
			for p := range uint64(2) {
				u := &unlucky{&dice{rng: rand.New(rand.NewPCG(seed, p))}}
				c, f := w.client(&pawl.Options{
					TTL: time.Second, LocalHandoff: time.Duration(1+seed%10) * time.Millisecond,
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
							u.visit(t, c, &b)
						}
					})
				}
				if seed%2 == p {
					time.AfterFunc(time.Duration(u.n(100))*time.Millisecond, func() { _ = c.Close(background) })
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
