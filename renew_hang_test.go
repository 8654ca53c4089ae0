package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestLeasesWhoseRenewalsHangCostNoOtherLease(t *testing.T) {
	for many, ttls := range map[int][]time.Duration{
		1:    {200 * time.Millisecond, 30 * time.Second},
		8:    {200 * time.Millisecond, time.Second, 30 * time.Second},
		200:  {50 * time.Millisecond, 200 * time.Millisecond, time.Second, 30 * time.Second},
		1000: {50 * time.Millisecond, 200 * time.Millisecond, time.Second},
	} {
		for _, brief := range ttls {
			t.Run(fmt.Sprintf("%d beside one of %v", many, brief), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					c, _ := w.hang(nil)
					defer c.Close(background)
					healthy := must(t)(c.Mutex("x", pawl.WithTTL(brief)).Lock(background))
					for round := range 4 { // they are lost, and there are new ones
						for i := range many {
							must(t)(c.Mutex(fmt.Sprintf("hangs %d %d", round, i)).Lock(background))
							time.Sleep(10 * time.Second / time.Duration(many))
							noError(t, healthy.Err())
						}
					}
					time.Sleep(time.Minute)
					noError(t, healthy.Err())
				})
			})
		}
	}
}

// Renewals that are due at the same time go out together, the one that hangs among them.
func TestLeaseThatHangsDoesNotTakeItsBatchWithIt(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 30 * time.Second} {
		for _, hang := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d of %v", hang, ttl), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					c, h := w.hang(&pawl.Options{TTL: ttl})
					defer c.Close(background)
					var healthy []*pawl.Lease
					for i := range 256 {
						if i < hang {
							must(t)(c.Mutex(fmt.Sprintf("hangs %d", i)).Lock(background))
							continue
						}
						healthy = append(healthy, must(t)(c.Mutex(fmt.Sprint(i)).Lock(background)))
					}
					time.Sleep(4 * ttl)
					for _, l := range healthy {
						noError(t, l.Err())
					}
					if n := h.asked.Load(); n > 600 {
						t.Errorf("%d renewals were sent", n)
					}
				})
			})
		}
	}
}

// Small batches do not make the client ask a backend that is down more often, nor with
// many goroutines.
func TestRenewalsOfABackendThatIsDownAreBounded(t *testing.T) {
	for name, down := range map[string]func(context.Context){
		"refuses": func(context.Context) {},
		"hangs":   func(ctx context.Context) { <-ctx.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := &dead{faulty: &faulty{Driver: w.memory.Driver()}, down: down}
				c, err := pawl.New(d, nil)
				noError(t, err)
				defer c.Close(background)
				leases := make([]*pawl.Lease, 10_000)
				for i := range leases {
					leases[i] = must(t)(c.Mutex(fmt.Sprint(i)).Lock(background))
				}
				before, most := runtime.NumGoroutine(), 0
				d.dead.Store(true)
				for range 240 {
					time.Sleep(100 * time.Millisecond)
					most = max(most, runtime.NumGoroutine()-before)
				}
				n := d.asked.Load()
				t.Logf("%d renewals were sent in 24 s, and there were %d goroutines more at most", n, most)
				if n > 2000 || most > 240 {
					t.Errorf("%d renewals were sent, there were %d goroutines", n, most)
				}
				d.dead.Store(false)
				time.Sleep(time.Minute)
				for _, l := range leases {
					noError(t, l.Err())
				}
				if n := d.asked.Load() - n; n > 3000 {
					t.Errorf("%d renewals were sent in the minute after", n)
				}
			})
		})
	}
}

// A renewal that hangs never delays the report that a lease is lost.
func TestLossIsSaidInTimeThoughRenewalsHang(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		f := &hanging{faulty: &faulty{Driver: w.memory.Driver()}}
		c, err := pawl.New(f, &pawl.Options{RequestTimeout: 20 * time.Second})
		noError(t, err)
		defer c.Close(background)
		f.hangs = func(driver.LeaseRef) bool { return true }
		var all sync.WaitGroup
		for i := range 200 {
			ttl := time.Second << (i % 6)
			l := must(t)(c.Mutex(fmt.Sprint(i), pawl.WithTTL(ttl)).Lock(background))
			all.Go(func() {
				<-l.Done()
				var lost *pawl.LostError
				if !errors.As(l.Err(), &lost) || lost.Reason != pawl.ReasonUnreachable || !lost.Until.After(time.Now()) {
					t.Errorf("lease %d of %v had to stop %v ago: %v", i, ttl, time.Since(lost.Until), lost)
				}
			})
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}
