package pawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// A minimum hold counts only if the function has begun.
func TestAGroupThatIsLostBeforeItsFunctionIsFreeAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := must(New(memlock.NewMemory(nil).Driver(), nil))(t)
		defer c.Close()
		minHold := WithMinHold(time.Minute)
		locks := All(c.Mutex("x", minHold), c.Mutex("y", minHold), c.Mutex("z", minHold))
		leases := must(locks.Lock(ctx))(t)
		noError(t, c.Break(ctx, "y", leases.Fence("y"), &BreakOptions{Delay: -1}))
		<-leases.Done()
		ran, err := do(ctx, leases, nil, func(context.Context) error { t.Error("the function ran"); return nil })
		if ran || !errors.Is(err, ErrLost) {
			t.Errorf("ran is %v: %v; want no run, and ErrLost", ran, err)
		}
		again := must(locks.TryLock(ctx))(t)
		noError(t, again.ReleaseUnused(ctx))
	})
}

// One caller holds the mutex m and waits for a permit of b. Another one holds b and waits
// for m: it locks b as a mutex, or it uses WithValueBelow, and so takes the locks in the
// order of names.
func TestACallerOfAllGivesWayToOneThatWaitsForIt(t *testing.T) {
	for name, other := range map[string]func(c *Client) []*locker{
		"mutex":  func(c *Client) []*locker { return All(c.Mutex("m"), c.Mutex("b")).parts },
		"reader": func(c *Client) []*locker { return All(c.Mutex("m"), c.RWMutex("b").RLocker()).parts },
		"condition": func(c *Client) []*locker {
			return All(c.Mutex("m", WithValueBelow([]byte("v"))), c.Semaphore("b", 1).Permits(1)).parts
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				memory := memlock.NewMemory(nil)
				var clients []*Client
				for range 2 {
					c := must(New(memory.Driver(), nil))(t)
					defer c.Close()
					clients = append(clients, c)
				}
				locks := All(clients[0].Mutex("m"), clients[0].Semaphore("b", 1).Permits(1))
				var leases, otherLeases GroupLease
				first := must(clients[0].Mutex("m").Lock(ctx))(t)
				done := make(chan error)
				go func() {
					at, err := takeInOrder(ctx, permitsLast(locks.parts), &leases, minGiveWayTimeout)
					if !errors.Is(err, errGaveWay) || at.name != "b" {
						t.Errorf("the wait ended at %v: %v; want errGaveWay at b", at, err)
					}
					leases.giveUp(ctx, nil)
					done <- nil
				}()
				synctest.Wait()
				go func() {
					_, err := takeInOrder(ctx, other(clients[1]), &otherLeases, 0)
					done <- err
				}()
				synctest.Wait() // the other holds b; both wait for m
				noError(t, first.Release(ctx))
				for range 2 {
					noError(t, <-done)
				}
				otherLeases.giveUp(ctx, nil)
			})
		})
	}
}
