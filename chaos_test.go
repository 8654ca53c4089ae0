package pawl_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Each client has its own QueueTTL, each claim its own TTL, and some requests and replies
// take longer than both: places and leases end while requests are under way. Err must not
// be nil for two leases that exclude each other, and nothing may be left at the end.
func TestLeasesNeverOverlapOverAFaultyNetwork(t *testing.T) {
	for seed := range uint64(10) {
		runInWorld(t, fmt.Sprint("seed ", seed), func(t *testing.T, w *world) {
			d := &dice{rng: rand.New(rand.NewPCG(seed, 8))}
			fault := func(string) error {
				time.Sleep(d.randomTime(20 * time.Millisecond))
				if d.oneIn(50) {
					time.Sleep(time.Duration(d.intN(1000)) * time.Millisecond)
				}
				if d.oneIn(10) {
					return errNet
				}
				return nil
			}
			var held [2]heldLeases
			var clients []*pawl.Client
			var nets []*network
			var users sync.WaitGroup
			for p := range uint64(3) {
				c, net := w.client(&pawl.Options{QueueTTL: mixedTTLs[1+(seed+p)%3], RetryFor: time.Second, HandoffWindow: time.Duration(seed%3) * 5 * time.Millisecond})
				net.setHooks(fault, fault)
				clients, nets = append(clients, c), append(nets, net)
				for range 6 {
					users.Go(func() {
						for range 30 {
							i := d.intN(len(held))
							held[i].claimAndHold(t, c, names[i], d)
						}
					})
				}
			}
			users.Wait()
			for _, net := range nets {
				net.setHooks(nil, nil)
			}
			time.Sleep(10 * time.Second)
			w.wantFree(names[:len(held)]...)
			for _, c := range clients {
				wantNothingLeft(t, c)
			}
		})
	}
}

var mixedTTLs = []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}

// heldLeases are the leases of a name whose Err returned nil.
type heldLeases struct {
	mu     sync.Mutex
	leases []heldLease
}

type heldLease struct {
	*pawl.Lease
	weight, limit int
}

// claimAndHold claims the name in a random way, and holds the lease for a while.
func (h *heldLeases) claimAndHold(t *testing.T, c *pawl.Client, name string, d *dice) {
	options := []pawl.LockOption{pawl.WithTTL(mixedTTLs[d.intN(4)])}
	if d.oneIn(4) {
		options = append(options, pawl.WithMaxHold(mixedTTLs[d.intN(4)]))
	}
	ctx, cancel := context.WithTimeout(background, time.Duration(d.intN(3000))*time.Millisecond)
	l := heldLease{weight: driver.Exclusive, limit: driver.Unlimited}
	var err error
	switch d.intN(6) {
	case 0:
		l.weight = 1
		l.Lease, err = c.RWMutex(name, options...).RLock(ctx)
	case 1:
		l.weight, l.limit = 1, 2
		l.Lease, err = c.Semaphore(name, 2, options...).Acquire(ctx, 1)
	case 2:
		l.Lease, err = c.Mutex(name, options...).TryLock(ctx)
	default:
		l.Lease, err = c.Mutex(name, options...).Lock(ctx)
	}
	cancel()
	if err != nil {
		if !errors.Is(err, pawl.ErrHeld) && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the claim failed with %v, want ErrHeld, ErrUnavailable or DeadlineExceeded", err)
		}
		return
	}
	h.check(t, l)
	for range d.intN(20) {
		time.Sleep(time.Duration(d.intN(10_000)) * time.Microsecond)
		h.check(t)
	}
	if err := l.Release(background); err != nil && !errors.Is(err, pawl.ErrLost) && !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("the release failed with %v, want ErrLost or ErrUnavailable", err)
	}
}

// check adds leases, and fails the test if Err is nil for two that exclude each other.
func (h *heldLeases) check(t *testing.T, more ...heldLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = slices.DeleteFunc(append(h.leases, more...), func(l heldLease) bool { return l.Err() != nil })
	slices.SortFunc(h.leases, func(l, m heldLease) int { return cmp.Compare(l.Fence(), m.Fence()) })
	sum := int64(0)
	for i, l := range h.leases { // in the order of their grants, so each limit counts the earlier leases
		sum += int64(l.weight)
		if sum > int64(l.limit) || i > 0 && l.Fence() == h.leases[i-1].Fence() {
			t.Errorf("%d permits of %d are held, or two leases have one fence: %v", sum, l.limit, h.leases)
		}
	}
}
