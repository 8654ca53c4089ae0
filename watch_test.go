package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// entryText describes an entry in few words.
func entryText(e pawl.Entry) string {
	return fmt.Sprintf("%d hold, %d wait, closed %v, %q", len(e.Holders), len(e.Waiters), e.ClosedFor > 0, e.Value)
}

// follow watches "x", and returns the entries after the first one.
func follow(t *testing.T, c *pawl.Client) (seen <-chan pawl.Entry, stop func()) {
	ctx, cancel := context.WithCancel(background)
	entries := make(chan pawl.Entry, 100)
	go func() {
		for e, err := range c.Watch(ctx, "x") {
			if !errors.Is(err, pawl.ErrClosed) { // at the end of the test
				noError(t, err)
			}
			entries <- e
		}
	}()
	<-entries
	return entries, cancel
}

func TestWatchYieldsEachChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, _ := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range b.Watch(ctx, "x") {
				noError(t, err)
				seen = append(seen, entryText(e))
			}
		}()
		waitTenSeconds := func() { time.Sleep(10 * time.Second) }
		waitTenSeconds()
		lease := must(a.Mutex("x", pawl.WithLockDelay(time.Minute)).Lock(background))(t)
		waitTenSeconds() // renewed meanwhile
		noError(t, lease.SetValue(background, []byte("v")))
		waitTenSeconds()
		briefCtx := timeoutCtx(t, 20*time.Second)
		go a.Mutex("x").Lock(briefCtx)
		waitTenSeconds()
		waitTenSeconds()
		waitTenSeconds()
		noError(t, a.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
		waitTenSeconds()
		time.Sleep(time.Minute)
		cancel()
		<-done
		want := []string{
			`0 hold, 0 wait, closed false, ""`, `1 hold, 0 wait, closed false, ""`, `1 hold, 0 wait, closed false, "v"`,
			`1 hold, 1 wait, closed false, "v"`, `1 hold, 0 wait, closed false, "v"`, `0 hold, 0 wait, closed true, "v"`,
			`0 hold, 0 wait, closed false, "v"`,
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("seen:\n%q\nwant:\n%q", seen, want)
		}
	})
}

// A watch sees a change even if it is not reported.
func TestWatchSeesChangesWithoutPush(t *testing.T) {
	for how, c := range map[string]struct {
		breakPushes func(net *network)
		within      time.Duration
	}{
		"pushed":          {func(*network) {}, 0},
		"lost on the way": {func(net *network) { net.noSignals = true }, 5 * time.Second},
		"unsupported":     {func(net *network) { net.noSignals, net.noPush = true, true }, time.Second},
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			b, net, a := w.twoWithNetwork()
			c.breakPushes(net)
			seen, stop := follow(t, b)
			defer stop()
			for range 20 {
				time.Sleep(7 * time.Second)
				lease := must(a.Mutex("x").Lock(background))(t)
				began := time.Now()
				<-seen
				wantWithin(t, "seen after", time.Since(began), 0, c.within)
				noError(t, lease.Release(background))
				<-seen
			}
		})
	}
}

// If the answer to a read is lost, the watch reads again.
func TestWatchBoundsEachRequest(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		for _, within := range []time.Duration{5 * time.Second, 2 * time.Second} {
			o := &pawl.Options{}
			if within < 5*time.Second {
				o.RequestTimeout = within
			}
			b, net := w.client(o)
			seen, stop := follow(t, b)
			synctest.Wait()
			net.setLatency(time.Hour)
			lease := must(a.Mutex("x").Lock(background))(t)
			time.Sleep(time.Second)
			net.setLatency(0)
			time.Sleep(within - time.Second + 100*time.Millisecond)
			select {
			case e := <-seen:
				if len(e.Holders) != 1 {
					t.Errorf("after %v the watch yielded %v, want one holder", within, e)
				}
			default:
				t.Errorf("after %v the watch has yielded nothing", within)
			}
			stop()
			synctest.Wait()
			noError(t, lease.Release(background))
		}
	})
}

// The time for which a watch retries begins again with each outage.
func TestWatchForgetsAFailureThatIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{RetryFor: 3 * time.Second})
		b, _ := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		go func() {
			for _, err := range a.Watch(ctx, "x") {
				noError(t, err)
			}
		}()
		for range 3 {
			time.Sleep(10 * time.Second)
			up := net.down()
			lease := must(b.Mutex("x").Lock(background))(t) // the push of this change makes the watch read
			time.Sleep(time.Second)
			up()
			noError(t, lease.Release(background))
		}
		cancel()
		synctest.Wait()
	})
}

// If the backend does not answer, Watch yields ErrUnavailable, and not the error of its
// internal ctx.
func TestWatchReturnsErrUnavailableWithoutAnAnswer(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		net.setLatency(time.Hour)
		took, err := timed(func() error {
			for _, err := range a.Watch(background, "x") {
				return err
			}
			return nil
		})
		isError(t, err, pawl.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) || took > 21*time.Second {
			t.Errorf("after %v the watch yielded %v, want an error that is not ctx's", took, err)
		}
		ctx := timeoutCtx(t, 3*time.Second)
		for _, err := range a.Watch(ctx, "x") {
			t.Errorf("Watch yields %v at the end of its ctx", err)
		}
		for _, err := range a.Watch(nil, "x") { //nolint:staticcheck // Watch must refuse it
			isError(t, err, pawl.ErrInvalid)
		}
	})
}

// A watch yields the error of an outage once, and goes on afterwards. A caller that got
// no error would take an old leader for the present one.
func TestWatchGoesOnAfterAnOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		ctx, cancel := context.WithCancel(background)
		var mu sync.Mutex
		var yielded []string
		record := func(what string, fence uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				isError(t, err, pawl.ErrUnavailable)
				what = "down"
			}
			if yielded = append(yielded, what); err != nil && fence != 0 {
				t.Errorf("the entry of an error has the fence %d", fence)
			}
		}
		go func() {
			for e, err := range a.Watch(ctx, "x") {
				record(fmt.Sprint("held by ", len(e.Holders)), e.Fence, err)
			}
		}()
		go func() {
			for l, err := range a.Election("x").Watch(ctx) {
				record(fmt.Sprint("led ", l.Term > 0), l.Term, err)
			}
		}()
		synctest.Wait()
		lease := must(b.Mutex("x").Lock(background))(t)
		time.Sleep(time.Second)
		for range 2 {
			up := net.down()
			time.Sleep(time.Hour)
			up()
			time.Sleep(time.Minute)
		}
		cancel()
		synctest.Wait()
		noError(t, lease.Release(background))
		slices.Sort(yielded) // because the order of the two watches varies
		want := []string{"down", "down", "down", "down", "held by 0", "held by 1", "held by 1", "held by 1", "led false", "led true", "led true", "led true"}
		if !slices.Equal(yielded, want) {
			t.Errorf("yielded %q, want %q", yielded, want)
		}
	})
}

// No backend pushes an expiry, so a watch reads the entry at that time.
func TestWatchSeesExpiriesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		options := &pawl.Options{TTL: 2500 * time.Millisecond, QueueTTL: 2500 * time.Millisecond}
		a, holderNet := w.client(options)
		b, waiterNet := w.client(options)
		c, _ := w.client(nil)
		seen, stop := follow(t, c)
		defer stop()
		waiterCtx, giveUp := context.WithCancel(background)
		defer giveUp()
		sees := func(what string, within time.Duration) {
			t.Helper()
			began := time.Now()
			var e pawl.Entry
			select {
			case e = <-seen:
			case <-time.After(time.Minute):
			}
			if took := time.Since(began); took > within+20*time.Millisecond {
				t.Errorf("%s: seen after %v, want %v: %s", what, took, within, entryText(e))
			}
		}
		must(a.Mutex("x", pawl.WithLockDelay(1500*time.Millisecond)).Lock(background))(t)
		<-seen
		go b.Mutex("x").Lock(waiterCtx)
		<-seen
		waiterNet.down()
		sees("the waiter is gone", 2500*time.Millisecond)
		holderNet.down()
		sees("the holder is gone, and the name closed", 2500*time.Millisecond)
		sees("the name is open", 1500*time.Millisecond)
	})
}

// The documentation of Watch bounds its requests for a name that does not change, and for
// a name that changes all the time.
func TestWatchSendsNoMoreThanTheDocumentedRequests(t *testing.T) {
	for how, c := range map[string]struct {
		breakPushes func(net *network)
		idle, busy  int // requests in 100 s without a change, and in 1 s of changes
	}{
		"pushed":      {func(*network) {}, 20, 100},
		"unsupported": {func(net *network) { net.noSignals, net.noPush = true, true }, 200, 40},
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			b, net, a := w.twoWithNetwork()
			c.breakPushes(net)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			var last pawl.Entry
			go func() {
				for last = range b.Watch(ctx, "x") {
				}
			}()
			time.Sleep(10 * time.Second)
			before := net.count("inspect")
			time.Sleep(100 * time.Second)
			wantWithin(t, "requests in 100 s without a change", net.count("inspect")-before, 0, c.idle+1)
			before = net.count("inspect")
			for range 1000 {
				lease := must(a.Mutex("x").Lock(background))(t)
				time.Sleep(time.Millisecond / 2)
				noError(t, lease.Release(background))
				time.Sleep(time.Millisecond / 2)
			}
			wantWithin(t, "requests in a second full of changes", net.count("inspect")-before, 0, c.busy+1)
			lease := must(a.Mutex("x").Lock(background))(t)
			time.Sleep(time.Second)
			synctest.Wait()
			if last.Fence != lease.Fence() || len(last.Holders) != 1 {
				t.Errorf("the last entry is %+v, want the lease with fence %d", last, lease.Fence())
			}
		})
	}
}

// The bounds also hold while the reads fail and the backend still pushes.
func TestAFailingWatchSendsNoMoreThanTheDocumentedRequests(t *testing.T) {
	const most = 1000 // requests in 10 s
	for what, watch := range map[string]func(ctx context.Context, c *pawl.Client){
		"Watch": func(ctx context.Context, c *pawl.Client) {
			for range c.Watch(ctx, "x") {
			}
		},
		"Election.Watch": func(ctx context.Context, c *pawl.Client) {
			for range c.Election("x").Watch(ctx) {
			}
		},
		"WaitUntilFree": func(ctx context.Context, c *pawl.Client) {
			for ctx.Err() == nil {
				_ = c.WaitUntilFree(ctx, "x")
			}
		},
	} {
		runInWorld(t, what, func(t *testing.T, w *world) {
			b, net, a := w.twoWithNetwork()
			ctx := timeoutCtx(t, 10*time.Second)
			net.down()
			var busy sync.WaitGroup
			busy.Go(func() {
				for ctx.Err() == nil {
					noError(t, must(a.Mutex("x").Lock(background))(t).Release(background))
					time.Sleep(time.Millisecond / 2)
				}
			})
			watch(ctx, b)
			wantWithin(t, "requests in 10 s of failing reads", net.count("inspect"), 0, most+1)
			busy.Wait()
		})
	}
}

func TestWatchEndsWithTheClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{RetryFor: 3 * time.Second})
		net.setHooks(nil, nil)
		last := make(chan error)
		go func() {
			var failed error
			for _, err := range a.Watch(background, "x") {
				failed = err
			}
			last <- failed
		}()
		synctest.Wait()
		took, err := timed(func() error { noError(t, a.Close()); return <-last })
		isError(t, err, pawl.ErrClosed)
		wantEqual(t, "Watch ended after the client by", took, 0)
		for _, err := range a.Watch(background, "a\x00b") {
			isError(t, err, pawl.ErrInvalid)
		}
	})
}

func TestWaitUntilFreeEndsWhenTheNameIsFree(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, net := w.client(&pawl.Options{RetryFor: time.Second})
		noError(t, b.WaitUntilFree(background, "x"))
		lease := must(a.Mutex("x").Lock(background))(t)
		waited := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.WaitUntilFree(ctx, "x") }()
			return done
		}

		briefCtx := timeoutCtx(t, 7*time.Second)
		err := <-waited(briefCtx)
		isError(t, err, context.DeadlineExceeded)
		isError(t, err, pawl.ErrHeld)
		isError(t, b.WaitUntilFree(briefCtx, "x"), context.DeadlineExceeded)

		stoppedCtx, stop := context.WithCancel(background)
		done := waited(stoppedCtx)
		stop()
		isError(t, <-done, context.Canceled)

		done = waited(background)
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("WaitUntilFree ended while the name was held: %v", err)
		default:
		}
		noError(t, lease.Release(background))
		noError(t, <-done)
		w.wantFree("x")

		net.down()
		isError(t, <-waited(background), pawl.ErrUnavailable)
		isError(t, b.WaitUntilFree(background, ""), pawl.ErrInvalid)
		isError(t, b.WaitUntilFree(nil, "x"), pawl.ErrInvalid) //nolint:staticcheck // WaitUntilFree must refuse it
	})
}

func TestSelfIsTheOwnerOfTheLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{Labels: map[string]string{"job": "1"}})
		must(c.Mutex("x").Lock(background))(t)
		mine := c.Self()
		if held := w.entry("x").Holders[0].Owner; held.Client != mine.Client || held.PID != mine.PID || held.Labels["job"] != "1" || mine.Labels["job"] != "1" {
			t.Errorf("Self is %+v, and the lease has %+v", mine, held)
		}
		mine.Labels["job"] = "2"
		wantEqual(t, "the client's own label", c.Self().Labels["job"], "1")
	})
}
