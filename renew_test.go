package pawl_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestLeasesWhoseRenewalsHangCostNoOtherLease(t *testing.T) {
	for many, ttls := range map[int][]time.Duration{
		1:    {200 * time.Millisecond, 30 * time.Second},
		8:    {200 * time.Millisecond, time.Second, 30 * time.Second},
		200:  {50 * time.Millisecond, 200 * time.Millisecond, time.Second, 30 * time.Second},
		1000: {50 * time.Millisecond, 200 * time.Millisecond, time.Second},
	} {
		if testing.Short() && many == 1000 {
			continue // make test-all runs this case, which takes long
		}
		for _, briefTTL := range ttls {
			runInWorld(t, fmt.Sprintf("%d beside one of %v", many, briefTTL), func(t *testing.T, w *world) {
				c, _ := w.clientWithHangingRenewals(nil)
				healthy := must(c.Mutex("x", pawl.WithTTL(briefTTL)).Lock(background))(t)
				for round := range 4 { // the leases are lost, and replaced
					for i := range many {
						must(c.Mutex(fmt.Sprintf("hangs %d %d", round, i)).Lock(background))(t)
						time.Sleep(10 * time.Second / time.Duration(many))
						noError(t, healthy.Err())
					}
				}
				time.Sleep(time.Minute)
				noError(t, healthy.Err())
			})
		}
	}
}

// Leases that are due at the same time are renewed in one request. Some of them hang.
func TestALeaseThatHangsDoesNotHarmItsBatch(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 30 * time.Second} {
		for _, hanging := range []int{1, 5} {
			runInWorld(t, fmt.Sprintf("%d of %v", hanging, ttl), func(t *testing.T, w *world) {
				c, net := w.clientWithHangingRenewals(&pawl.Options{TTL: ttl})
				var healthy []*pawl.Lease
				for i := range 256 {
					if i < hanging {
						must(c.Mutex(fmt.Sprintf("hangs %d", i)).Lock(background))(t)
						continue
					}
					healthy = append(healthy, must(c.Mutex(fmt.Sprint(i)).Lock(background))(t))
				}
				time.Sleep(4 * ttl)
				for _, l := range healthy {
					noError(t, l.Err())
				}
				wantWithin(t, "renewals", net.count("renew"), 0, 600)
			})
		}
	}
}

// Small batches do not cause many requests or goroutines while the backend is down.
func TestRenewalsOfABackendThatIsDownAreBounded(t *testing.T) {
	skipIfShort(t, "it renews ten thousand leases")
	for name, down := range map[string]func(net *network){
		"refuses": func(net *network) { net.setHooks(failRequests("renew"), nil) },
		"hangs":   func(net *network) { net.setStuck(func(op string, _ int) bool { return op == "renew" }) },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, net := w.client(nil)
			leases := make([]*pawl.Lease, 10_000)
			for i := range leases {
				leases[i] = must(c.Mutex(fmt.Sprint(i)).Lock(background))(t)
			}
			before, maxGoroutines := runtime.NumGoroutine(), 0
			down(net)
			for range 240 {
				time.Sleep(100 * time.Millisecond)
				maxGoroutines = max(maxGoroutines, runtime.NumGoroutine()-before)
			}
			n := net.count("renew")
			t.Logf("%d renewals were sent in 24 s, and at most %d more goroutines ran", n, maxGoroutines)
			wantWithin(t, "renewals in 24 s", n, 0, 2000)
			wantWithin(t, "more goroutines", maxGoroutines, 0, 240)
			net.setHooks(nil, nil)
			net.setStuck(nil)
			time.Sleep(time.Minute)
			for _, l := range leases {
				noError(t, l.Err())
			}
			wantWithin(t, "renewals in the minute after", net.count("renew")-n, 0, 3000)
		})
	}
}

// A renewal that hangs never delays the report that a lease is lost.
func TestLossIsReportedInTimeThoughRenewalsHang(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(&pawl.Options{RequestTimeout: 20 * time.Second})
		net.setStuck(func(op string, _ int) bool { return op == "renew" })
		var all sync.WaitGroup
		for i := range 200 {
			ttl := time.Second << (i % 6)
			l := must(c.Mutex(fmt.Sprint(i), pawl.WithTTL(ttl)).Lock(background))(t)
			all.Go(func() {
				<-l.Done()
				if lost := wantLoss(t, l.Err(), pawl.ReasonUnreachable); !lost.StopBy.After(time.Now()) {
					t.Errorf("StopBy of lease %d of %v was %v ago: %v", i, ttl, time.Since(lost.StopBy), lost)
				}
			})
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}

// A grant from the queue lasts one QueueTTL, counted from the last attempt that was
// answered. If that was long ago, the first renewal must not wait for half of the term:
// on an engine that compares and swaps, the rest may be too short for a renewal.
func TestGrantWithLittleOfItsTermLeftIsRenewedAtOnce(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, net := w.client(&pawl.Options{QueueTTL: 10 * time.Second})
		held := must(a.Mutex("x").Lock(background))(t)
		got := make(chan *pawl.Lease, 1)
		go func() { l, _ := b.Mutex("x").Lock(background); got <- l }()
		w.wantWaiters("x", 1)
		net.setHooks(failRequests("acquire"), nil)
		time.Sleep(5 * time.Second)
		noError(t, held.Release(background))
		lease := <-got
		synctest.Wait()
		wantEqual(t, "renewals at once", net.count("renew"), 1)
		wantEqual(t, "the rest of the term", time.Until(lease.Deadline()), 27*time.Second)
		noError(t, lease.Release(background))
	})
}

func TestALossIsReportedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var losses atomic.Int32
		c, net := w.client(&pawl.Options{Observer: &pawl.Observer{Lost: func(pawl.LostEvent) { losses.Add(1) }}})
		lease := must(c.Mutex("x").Lock(background))(t)
		net.down()
		time.Sleep(27*time.Second - time.Nanosecond)
		noError(t, lease.Err())
		time.Sleep(time.Nanosecond) // the timer and Err detect the loss in the same instant
		first := lease.Err()
		isError(t, first, pawl.ErrLost)
		time.Sleep(time.Minute)
		wantEqual(t, "the second answer of Err", lease.Err(), first)
		synctest.Wait()
		wantEqual(t, "reported losses", losses.Load(), 1)
		wantWithin(t, "renewals", net.count("renew"), 10, 100)
	})
}

// sleepingClient makes a client of a machine that has slept for as long as the test sets.
func (w *world) sleepingClient() (*pawl.Client, *network, *atomic.Int64) {
	net, slept := w.network(), &atomic.Int64{}
	c := pawl.NewAsleep(net, nil, func() time.Duration { return time.Duration(slept.Load()) })
	w.t.Cleanup(func() { _ = c.Close() })
	return c, net, slept
}

func TestALeaseThatExpiredWhileTheMachineSleptIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net, slept := w.sleepingClient()
		lease := must(c.Mutex("x").Lock(background))(t)
		net.down()
		slept.Store(int64(time.Minute)) // time passes only on the boot clock
		isError(t, lease.Err(), pawl.ErrLost)

		net.setHooks(nil, nil)
		released := must(c.Mutex("z").Lock(background))(t)
		slept.Store(int64(90 * time.Second))
		isError(t, released.Release(background), pawl.ErrLost) // Release checks the clock, too

		net.setHooks(nil, nil)
		watched := must(c.Mutex("y").Lock(background))(t)
		net.down()
		slept.Store(int64(2 * time.Minute))
		began := time.Now()
		<-watched.Done() // no caller uses Err
		wantWithin(t, "the loss was detected after", time.Since(began), 0, time.Second)
	})
}

func TestOneLeaseThatIsGoneDoesNotHarmItsBatch(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		net.noSignals = true
		b, _ := w.client(nil)
		gone := must(a.Mutex("gone").Lock(background))(t)
		stays := must(a.Mutex("stays").Lock(background))(t)
		noError(t, b.Break(background, "gone", gone.Fence(), noDelay))
		time.Sleep(time.Minute)
		isError(t, gone.Err(), pawl.ErrLost)
		noError(t, stays.Err())
	})
}

func TestMissedRenewalsAreNotMadeUpAfterAPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net, slept := w.sleepingClient()
		lease := must(c.Mutex("x").Lock(background))(t)
		slept.Store(int64(20 * time.Second)) // two renewals were missed
		time.Sleep(5 * time.Second)
		noError(t, lease.Err())
		wantEqual(t, "renewals", net.count("renew"), 1)
	})
}

func TestLeasesCostNoGoroutines(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		before, leases := runtime.NumGoroutine(), make([]*pawl.Lease, 5000)
		for i := range leases {
			leases[i] = must(c.Mutex(fmt.Sprint("x", i)).Lock(background))(t)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 5 {
			t.Errorf("%d goroutines for 5000 leases", n)
		}
		for _, l := range leases {
			noError(t, l.Err())
		}
		if n := net.count("renew"); n > 12*5*30 { // in batches
			t.Errorf("%d requests renewed 5000 leases for four TTLs", n)
		}
		wantEqual(t, "leases", c.Leases(), 5000)
	})
}

// A repeated renewal of a single lease has as much time as the first one, even near the
// end of a maximum hold.
func TestARepeatedRenewalOfOneLeaseHasAsMuchTimeAsTheFirst(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		lease := must(c.Mutex("x", pawl.WithTTL(6*time.Second), pawl.WithMaxHold(7*time.Second)).Lock(background))(t)
		up := net.down()
		time.Sleep(4 * time.Second)
		net.setLatency(900 * time.Millisecond) // a sixth of the TTL is a second
		up()
		<-lease.Done()
		wantLoss(t, lease.Err(), pawl.ReasonMaxHold)
	})
}

// The observer gets no Failed event for a renewal that Close has ended.
func TestARenewalThatCloseEndsIsNoFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var failed atomic.Int32
		c, net := w.client(&pawl.Options{Observer: &pawl.Observer{Failed: func(pawl.FailedEvent) { failed.Add(1) }}})
		must(c.Mutex("x").Lock(background))(t)
		net.setLatency(time.Second)
		for net.count("renew") == 0 {
			time.Sleep(time.Millisecond)
		}
		noError(t, c.Close())
		wantEqual(t, "failures", failed.Load(), 0)
	})
}

func TestConfirmAsksTheBackend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		lease := must(a.Mutex("x").Lock(background))(t)
		noError(t, lease.Confirm(background))
		up := net.down()
		isError(t, lease.Confirm(background), pawl.ErrUnavailable)
		noError(t, lease.Err())
		up()
		net.dropSignals()
		must(b.Mutex("x").ForceLock(background))(t)
		noError(t, lease.Err()) // no signal has come
		isError(t, lease.Confirm(background), pawl.ErrLost)
		isError(t, lease.Err(), pawl.ErrLost)
	})
}
