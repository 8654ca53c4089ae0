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

// show is an entry in few words.
func show(e pawl.Entry) string {
	return fmt.Sprintf("%d hold, %d wait, closed %v, %q", len(e.Holders), len(e.Waiters), e.ClosedFor > 0, e.Value)
}

// follow watches "x", and returns what it sees after the first entry.
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
				seen = append(seen, show(e))
			}
		}()
		settle := func() { time.Sleep(10 * time.Second) }
		settle()
		lease := must(t)(a.Mutex("x", pawl.WithLockDelay(time.Minute)).Lock(background))
		settle() // renewed meanwhile
		noError(t, lease.SetValue(background, []byte("v")))
		settle()
		short, stop := context.WithTimeout(background, 20*time.Second)
		defer stop()
		go a.Mutex("x").Lock(short)
		settle()
		settle()
		settle()
		noError(t, a.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
		settle()
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
func TestWatchMissesNothingForGood(t *testing.T) {
	for how, c := range map[string]struct {
		break_ func(f *faulty)
		within time.Duration
	}{
		"told":            {func(*faulty) {}, 0},
		"lost on the way": {func(f *faulty) { f.noSignals = true }, 5 * time.Second},
		"unsupported":     {func(f *faulty) { f.noSignals, f.noPush = true, true }, time.Second},
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			b, f, a := w.twoWithNetwork()
			c.break_(f)
			seen, stop := follow(t, b)
			defer stop()
			for range 20 {
				time.Sleep(7 * time.Second)
				lease := must(t)(a.Mutex("x").Lock(background))
				if took, _ := after(func() error { <-seen; return nil }); took > c.within {
					t.Errorf("seen after %v, want %v at the most", took, c.within)
				}
				noError(t, lease.Release(background))
				<-seen
			}
		})
	}
}

// An answer that is lost does not blind the watch: it asks again.
func TestWatchBoundsEachRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		for _, within := range []time.Duration{5 * time.Second, 2 * time.Second} {
			o := &pawl.Options{}
			if within < 5*time.Second {
				o.RequestTimeout = within
			}
			b, net := w.client(o)
			seen, stop := follow(t, b)
			synctest.Wait()
			net.slow(time.Hour)
			lease := must(t)(a.Mutex("x").Lock(background))
			time.Sleep(time.Second)
			net.slow(0)
			time.Sleep(within - time.Second + 100*time.Millisecond)
			select {
			case e := <-seen:
				if len(e.Holders) != 1 {
					t.Errorf("after %v it has seen %v", within, e)
				}
			default:
				t.Errorf("after %v it has seen nothing", within)
			}
			stop()
			synctest.Wait()
			noError(t, lease.Release(background))
		}
	})
}

// The time for which a watch bears a failing backend begins with each failure.
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
			lease := must(t)(b.Mutex("x").Lock(background)) // so it looks
			time.Sleep(time.Second)
			up()
			noError(t, lease.Release(background))
		}
		cancel()
		synctest.Wait()
	})
}

// The watch of a backend that does not answer ends with what that is, and not with the
// error of a ctx that its caller does not know.
func TestWatchSaysThatTheBackendDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		net.slow(time.Hour)
		took, err := after(func() error {
			for _, err := range a.Watch(background, "x") {
				return err
			}
			return nil
		})
		isError(t, err, pawl.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) || took > 21*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(background, 3*time.Second)
		defer cancel()
		for _, err := range a.Watch(ctx, "x") {
			t.Errorf("its ctx has ended: %v", err)
		}
		for _, err := range a.Watch(nil, "x") { //nolint:staticcheck // that is what is tried
			isError(t, err, pawl.ErrInvalid)
		}
	})
}

// A watch reports an outage once, and goes on when it is over: a caller that only reads
// entries would take the leader from before it for the present one.
func TestWatchGoesOnAfterAnOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		ctx, cancel := context.WithCancel(background)
		var mu sync.Mutex
		var told []string
		tell := func(what string, fence uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				isError(t, err, pawl.ErrUnavailable)
				what = "down"
			}
			if told = append(told, what); err != nil && fence != 0 {
				t.Errorf("with an error it says %d", fence)
			}
		}
		go func() {
			for e, err := range a.Watch(ctx, "x") {
				tell(fmt.Sprint("held by ", len(e.Holders)), e.Fence, err)
			}
		}()
		go func() {
			for l, err := range a.Election("x").Watch(ctx) {
				tell(fmt.Sprint("led ", l.Term > 0), l.Term, err)
			}
		}()
		synctest.Wait()
		lease := must(t)(b.Mutex("x").Lock(background))
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
		slices.Sort(told) // of the two watches
		want := []string{"down", "down", "down", "down", "held by 0", "held by 1", "held by 1", "held by 1", "led false", "led true", "led true", "led true"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// No backend pushes an end that comes by itself: a watch looks when it comes.
func TestWatchSeesAtOnceWhatEndsByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		options := &pawl.Options{TTL: 2500 * time.Millisecond, QueueTTL: 2500 * time.Millisecond}
		a, holds := w.client(options)
		b, waits := w.client(options)
		c, _ := w.client(nil)
		seen, stop := follow(t, c)
		defer stop()
		dead, giveUp := context.WithCancel(background)
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
				t.Errorf("%s: seen after %v, want %v: %s", what, took, within, show(e))
			}
		}
		must(t)(a.Mutex("x", pawl.WithLockDelay(1500*time.Millisecond)).Lock(background))
		<-seen
		go b.Mutex("x").Lock(dead)
		<-seen
		waits.down()
		sees("the waiter is gone", 2500*time.Millisecond)
		holds.down()
		sees("the holder is gone, and the name closed", 2500*time.Millisecond)
		sees("the name is open", 1500*time.Millisecond)
	})
}

// The requests of a watch to the backend, for a name to which nothing happens, and for
// one that changes all the time.
func TestWatchAsksNoMoreThanItSays(t *testing.T) {
	for how, c := range map[string]struct {
		break_     func(f *faulty)
		idle, busy int // requests in 100 s, and in one
	}{
		"told":        {func(*faulty) {}, 20, 100},
		"unsupported": {func(f *faulty) { f.noSignals, f.noPush = true, true }, 200, 40},
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			b, f, a := w.twoWithNetwork()
			c.break_(f)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			var last pawl.Entry
			go func() {
				for last = range b.Watch(ctx, "x") {
				}
			}()
			time.Sleep(10 * time.Second)
			before := f.count("inspect")
			time.Sleep(100 * time.Second)
			if got := f.count("inspect") - before; got > c.idle+1 {
				t.Errorf("%d requests in 100 s in which nothing happened, want %d at the most", got, c.idle)
			}
			before = f.count("inspect")
			for range 1000 {
				lease := must(t)(a.Mutex("x").Lock(background))
				time.Sleep(time.Millisecond / 2)
				noError(t, lease.Release(background))
				time.Sleep(time.Millisecond / 2)
			}
			if got := f.count("inspect") - before; got > c.busy+1 {
				t.Errorf("%d requests in a second in which all happened, want %d at the most", got, c.busy)
			}
			lease := must(t)(a.Mutex("x").Lock(background))
			time.Sleep(time.Second)
			synctest.Wait()
			if last.Fence != lease.Fence() || len(last.Holders) != 1 {
				t.Errorf("at last it saw %+v, want what there is", last)
			}
		})
	}
}

// Nor does it ask more often while its reads fail and the backend goes on to push.
func TestWatchThatFailsAsksNoMoreThanItSays(t *testing.T) {
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
			b, f, a := w.twoWithNetwork()
			ctx, cancel := context.WithTimeout(background, 10*time.Second)
			defer cancel()
			f.down()
			var busy sync.WaitGroup
			busy.Go(func() {
				for ctx.Err() == nil {
					noError(t, must(t)(a.Mutex("x").Lock(background)).Release(background))
					time.Sleep(time.Millisecond / 2)
				}
			})
			watch(ctx, b)
			if n := f.count("inspect"); n > most+1 {
				t.Errorf("%d requests in 10 s in which all reads failed, want %d at the most", n, most)
			}
			busy.Wait()
		})
	}
}

func TestWatchEndsWithTheClientAndSaysWhatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{RetryFor: 3 * time.Second})
		net.set(nil, nil)
		last := make(chan error)
		go func() {
			var failed error
			for _, err := range a.Watch(background, "x") {
				failed = err
			}
			last <- failed
		}()
		synctest.Wait()
		took, err := after(func() error { noError(t, a.Close()); return <-last })
		isError(t, err, pawl.ErrClosed)
		if took > 0 {
			t.Errorf("it ended %v after the client", took)
		}
		for _, err := range a.Watch(background, "a\x00b") {
			isError(t, err, pawl.ErrInvalid)
		}
	})
}

func TestWaitFreeEndsWhenNobodyHoldsTheName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(&pawl.Options{RetryFor: time.Second})
		noError(t, b.WaitUntilFree(background, "x"))
		lease := must(t)(a.Mutex("x").Lock(background))
		waited := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.WaitUntilFree(ctx, "x") }()
			return done
		}

		soon, cancel := context.WithTimeout(background, 7*time.Second)
		defer cancel()
		err := <-waited(soon)
		isError(t, err, context.DeadlineExceeded)
		isError(t, err, pawl.ErrHeld)
		isError(t, b.WaitUntilFree(soon, "x"), context.DeadlineExceeded)

		stopped, stop := context.WithCancel(background)
		done := waited(stopped)
		stop()
		isError(t, <-done, context.Canceled)

		done = waited(background)
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("it ended while the name was held: %v", err)
		default:
		}
		noError(t, lease.Release(background))
		noError(t, <-done)
		if e := w.entry("x"); len(e.Holders)+len(e.Waiters) > 0 {
			t.Errorf("it left %+v", e)
		}

		f.down()
		isError(t, <-waited(background), pawl.ErrUnavailable)
		isError(t, b.WaitUntilFree(background, ""), pawl.ErrInvalid)
		isError(t, b.WaitUntilFree(nil, "x"), pawl.ErrInvalid) //nolint:staticcheck // it is to be refused
	})
}

func TestOwnerIsTheOneOfItsLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{Labels: map[string]string{"job": "1"}})
		must(t)(c.Mutex("x").Lock(background))
		mine := c.Self()
		if held := w.entry("x").Holders[0].Owner; held.Client != mine.Client || held.PID != mine.PID || held.Labels["job"] != "1" || mine.Labels["job"] != "1" {
			t.Errorf("it is %+v, and its lease has %+v", mine, held)
		}
		mine.Labels["job"] = "2"
		if c.Self().Labels["job"] != "1" {
			t.Error("the caller changed the client's labels")
		}
	})
}
