package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestLeaseIsPassedOnInsideTheProcessWithFencesOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 10 * time.Microsecond
		var mu sync.Mutex
		var last uint64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 10 {
					l := must(t)(c.Mutex("x").Lock(background))
					mu.Lock()
					if l.Fence() <= last {
						t.Errorf("fence %d after %d", l.Fence(), last)
					}
					last = l.Fence()
					mu.Unlock()
					noError(t, l.Release(background))
				}
			})
		}
		wg.Wait()
		if n := f.count("acquire"); n > 50 {
			t.Errorf("%d requests for 640 locks", n)
		}
		w.free("x")
		if n := c.Gates() + c.Inboxes() + c.Leases(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
	})
}

func TestAnotherProcessWaitsNoLongerThanABatchAndAHold(t *testing.T) {
	const batch, hold = 10 * time.Millisecond, 3 * time.Millisecond
	inWorld(t, func(t *testing.T, w *world) {
		busy, _ := w.client(nil)
		other, _ := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for ctx.Err() == nil {
					l := must(t)(busy.Mutex("x").Lock(background))
					time.Sleep(hold)
					noError(t, l.Release(background))
				}
			})
		}
		for range 50 {
			time.Sleep(7 * time.Millisecond)
			began := time.Now()
			l := must(t)(other.Mutex("x").Lock(background))
			if waited := time.Since(began); waited > batch+hold {
				t.Errorf("it waited %v", waited)
			}
			noError(t, l.Release(background))
		}
		cancel()
		wg.Wait()
	})
}

func TestOnlyTheHeadOfAProcessStandsInTheBackendsQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		held := must(t)(a.Mutex("x").Lock(background))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { noError(t, must(t)(b.Mutex("x").Lock(background)).Release(background)) })
		}
		w.waitersLeft("x", 1)
		_, err := b.Mutex("x").TryLock(background) // which does not pass them
		isError(t, err, pawl.ErrHeld)
		noError(t, held.Release(background))
		wg.Wait()
		w.free("x")
	})
}

func TestBatchOffGoesBackToTheQueueEachTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, f := w.client(&pawl.Options{LocalBatch: -1})
		b, _ := w.client(&pawl.Options{LocalBatch: -1})
		var mu sync.Mutex
		var order string
		turn := func(c *pawl.Client, who string) func() {
			return func() {
				l := must(t)(c.Mutex("x").Lock(background))
				time.Sleep(time.Millisecond)
				mu.Lock()
				order += who
				mu.Unlock()
				noError(t, l.Release(background))
			}
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(turn(a, "a"))
			synctest.Wait()
			wg.Go(turn(b, "b"))
			synctest.Wait()
		}
		wg.Wait()
		if order != "ababab" {
			t.Errorf("order %s", order)
		}
		if f.count("acquire") < 3 {
			t.Error("a lease was passed on")
		}
	})
}

func TestOnlyAClaimLikeItTakesALeaseOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		for name, other := range map[string]func(context.Context) (*pawl.Lease, error){
			"reader":        c.RWMutex("x").RLock,
			"other TTL":     c.Mutex("x", pawl.WithTTL(time.Minute)).Lock,
			"other labels":  c.Mutex("x", pawl.WithLabel("a", "b")).Lock,
			"at least":      c.Mutex("x", pawl.WithAtLeast(time.Millisecond)).Lock,
			"longest hold":  c.Mutex("x", pawl.WithMaxHold(time.Hour)).Lock,
			"other margin":  c.Mutex("x", pawl.WithMargin(14*time.Second)).Lock,
			"closing delay": c.Mutex("x", pawl.WithLockDelay(time.Second)).Lock,
		} {
			held := must(t)(c.Mutex("x").Lock(background))
			holder := w.entry("x").Holders[0].Fence
			got := make(chan *pawl.Lease)
			go func() { got <- must(t)(other(background)) }()
			synctest.Wait()
			noError(t, held.Release(background))
			l := <-got
			if f := w.entry("x").Holders[0].Fence; f == holder {
				t.Errorf("%s: it has the lease of another kind of claim", name)
			}
			noError(t, l.Release(background))
			time.Sleep(time.Second)
		}
	})
}

// The one to whom a lease is passed may have given up in that instant: then it passes it on.
func TestLeasePassedToAWaiterThatGaveUpGoesOn(t *testing.T) {
	for range 200 {
		inWorld(t, func(t *testing.T, w *world) {
			c, _ := w.client(nil)
			held := must(t)(c.Mutex("x").Lock(background))
			ctx, cancel := context.WithCancel(background)
			quits := make(chan struct{})
			go func() {
				defer close(quits)
				if l, err := c.Mutex("x").Lock(ctx); err == nil {
					noError(t, l.Release(background))
				}
			}()
			synctest.Wait()
			stays := make(chan *pawl.Lease, 1)
			go func() { stays <- must(t)(c.Mutex("x").Lock(background)) }()
			synctest.Wait()
			go cancel()
			noError(t, held.Release(background))
			<-quits
			noError(t, (<-stays).Release(background))
			w.free("x")
		})
	}
}

func TestLostTenureIsNotPassedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		held := must(t)(a.Mutex("x").Lock(background))
		got := make(chan *pawl.Lease, 1)
		go func() { got <- must(t)(a.Mutex("x").Lock(background)) }()
		synctest.Wait()
		stolen := must(t)(b.Mutex("x").Steal(background))
		synctest.Wait()
		isError(t, held.Release(background), pawl.ErrLost)
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("the stolen lease was passed on")
		default:
		}
		noError(t, stolen.Release(background))
		noError(t, (<-got).Err())
	})
}

// A lease that is held for long has no gate: what is kept of its name goes when its window has closed.
func TestGatesOfLeasesThatAreHeldAreForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		var leases []*pawl.Lease
		lock := func(i int) { leases = append(leases, must(t)(c.Mutex(fmt.Sprint("x", i)).Lock(background))) }
		for i := range 1000 {
			lock(i)
		}
		time.Sleep(time.Second)
		for i := range 200 { // in each shard one comes by, and finds what is left there
			lock(1000 + i)
		}
		if n := c.Gates(); n > 200 {
			t.Errorf("%d gates for 1200 leases, want those of the last 200 at the most", n)
		}
		for _, l := range leases {
			noError(t, l.Release(background))
		}
		if n := c.Gates(); n > 0 {
			t.Errorf("%d gates were left behind", n)
		}
	})
}
