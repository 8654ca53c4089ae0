package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestCloseEndsEverything(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		lease := must(a.Mutex("x").Lock(background))(t)
		foreign := must(b.Mutex("y").Lock(background))(t)
		waiters := make(chan error)
		for _, name := range []string{"x", "x", "y", "y"} { // this client holds x, and the other y
			go func() { waiters <- errOf(a.Mutex(name).Lock(background)) }()
		}
		synctest.Wait()
		noError(t, a.Close())
		for range 4 {
			isError(t, <-waiters, pawl.ErrClosed)
		}
		<-lease.Done()
		isError(t, lease.Err(), pawl.ErrLost, pawl.ErrClosed)
		isError(t, lease.Release(background), pawl.ErrClosed)
		w.wantFree("x")
		if e := w.entry("y"); len(e.Waiters) != 0 || len(e.Holders) != 1 || foreign.Err() != nil {
			t.Errorf("y is %+v; want only the other client's lease", e)
		}

		isError(t, errOf(a.Mutex("x").Lock(background)), pawl.ErrClosed)
		isError(t, errOf(a.Mutex("x").TryLock(background)), pawl.ErrClosed)
		isError(t, errOf(a.Inspect(background, "x")), pawl.ErrClosed)
		for _, err := range a.List(background, "") {
			isError(t, err, pawl.ErrClosed)
		}
		isError(t, a.Break(background, "x", 1, noDelay), pawl.ErrClosed)
		noError(t, a.Close()) // a second time
	})
}

func TestAcquireRacingCloseLeavesNothing(t *testing.T) {
	for range 100 {
		withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
			net.latency = time.Millisecond
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Microsecond)
					lease, err := c.Mutex("x").Lock(background)
					if err == nil {
						err = lease.Release(background)
					}
					if err != nil {
						isError(t, err, pawl.ErrClosed)
					}
				})
			}
			time.Sleep(1500 * time.Microsecond)
			noError(t, c.Close())
			wg.Wait()
			w.wantFree("x")
		})
	}
}

func TestSecondCloseWaitsNoLongerThanItsOwnCtx(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		must(c.Mutex("x").Lock(background))(t)
		net.down()
		first := make(chan error)
		go func() { first <- c.Close() }()
		synctest.Wait()
		ctx := timeoutCtx(t, time.Second)
		isError(t, c.CloseWithin(ctx), context.DeadlineExceeded)
		answer := <-first // after the default time limit of Close
		isError(t, answer, pawl.ErrUnavailable)
		isError(t, c.Close(), answer)
	})
}

func TestCloseReportsUnreleasedLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &server{healthy: func(l driver.LeaseRef) bool { return l.Name != "x3" && l.Name != "x7" }}
		c := w.clientWithLeases(10, s)
		took, err := timed(c.Close)
		isError(t, err, pawl.ErrUnavailable)
		wantWithin(t, "Close took", took, 0, 3*time.Second)
		wantUnreleased(t, err, 2)
		wantEqual(t, "the error of a second Close", c.Close(), err)
		for i := range 10 {
			if n := len(w.entry("x" + strconv.Itoa(i)).Holders); n > 0 != (i == 3 || i == 7) {
				t.Errorf("x%d has %d holders", i, n)
			}
		}
	})
}

// Close takes 3 s at most if the server is gone, whether requests hang or are refused,
// and whether or not the driver can close.
func TestCloseEndsSoonWhenTheServerIsGone(t *testing.T) {
	refused := func(net *network) { net.down() }
	hangs := func(net *network) { net.setStuck(allRequests) }
	for what, down := range map[string]func(*network){"refused": refused, "hangs": hangs} {
		for _, driverTakes := range []time.Duration{0, time.Minute} {
			for state, prepare := range map[string]func(c *pawl.Client, down func()){
				"leases": func(c *pawl.Client, down func()) {
					for i := range 100 {
						must(c.Mutex(strconv.Itoa(i)).Lock(background))(t)
					}
					down()
				},
				"a claim under way": func(c *pawl.Client, down func()) { down(); go c.Mutex("x").Lock(background) },
				"a try under way":   func(c *pawl.Client, down func()) { down(); go c.Mutex("x").TryLock(background) },
				"a release under way": func(c *pawl.Client, down func()) {
					lease := must(c.Mutex("x").Lock(background))(t)
					down()
					go lease.Release(background)
				},
				"a claim that was given up": func(c *pawl.Client, down func()) {
					down()
					ctx, cancel := context.WithCancel(background)
					go c.Mutex("x").Lock(ctx)
					synctest.Wait()
					cancel()
				},
			} {
				runInWorld(t, fmt.Sprint(what, " ", state, " ", driverTakes), func(t *testing.T, w *world) {
					c, net := w.client(nil)
					net.closeTime = driverTakes
					prepare(c, func() { down(net) })
					synctest.Wait()
					took, err := timed(c.Close)
					if e, ok := errors.AsType[*pawl.CloseError](err); !ok || e.Unreleased == 0 {
						t.Errorf("Close returns %v, want a *CloseError with unreleased leases", err)
					}
					wantWithin(t, "Close took", took, 0, 3*time.Second)
					time.Sleep(2 * time.Minute) // nothing is left running after that
				})
			}
		}
	}
}

// While a server answers, however slowly, Close waits for it, up to 15 s. It leaves
// nothing, unless there are too many leases for that time.
func TestCloseLeavesNothingWhereTheServerIsSlow(t *testing.T) {
	for what, c := range map[string]struct {
		leases      int
		server      *server
		least, most time.Duration
		left        int // at least
	}{
		"many":                {20_000, &server{releaseTime: 500 * time.Microsecond}, 10 * time.Second, 12 * time.Second, 0},
		"one after the other": {200, &server{releaseTime: 20 * time.Millisecond}, 4 * time.Second, 5 * time.Second, 0},
		"a distant server":    {50, &server{answerDelay: 1200 * time.Millisecond}, 0, time.Minute, 0},
		"distant, and many":   {500, &server{answerDelay: 1200 * time.Millisecond}, 0, time.Minute, 0},
		"far too many":        {3000, &server{releaseTime: 20 * time.Millisecond}, 15 * time.Second, 17 * time.Second, 2000},
	} {
		runInWorld(t, what, func(t *testing.T, w *world) {
			client := w.clientWithLeases(c.leases, c.server)
			took, err := timed(client.Close)
			wantWithin(t, "Close took", took, c.least, c.most)
			if c.left > 0 {
				if e, ok := errors.AsType[*pawl.CloseError](err); !ok || e.Unreleased < c.left {
					t.Errorf("Close returns %v, want some 2200 unreleased leases", err)
				}
				return
			}
			noError(t, err)
			wantWithin(t, "releases", c.server.released.Load(), 0, int64(c.leases)*11/10)
			for i := range c.leases {
				if e := w.entry("x" + strconv.Itoa(i)); len(e.Holders) > 0 {
					t.Errorf("x%d is held", i)
				}
			}
		})
	}
}

// The backend is away for a second, as during a fail-over.
func TestCloseLeavesNothingWhereTheServerIsBackSoon(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		for i := range 100 {
			must(c.Mutex("x" + strconv.Itoa(i)).Lock(background))(t)
		}
		time.AfterFunc(time.Second, net.down())
		noError(t, c.Close())
		for i := range 100 {
			w.wantFree("x" + strconv.Itoa(i))
		}
	})
}

func TestCloseWithACtxThatIsOverStillSendsOneRoundOfReleases(t *testing.T) {
	for name, healthy := range map[string]func(driver.LeaseRef) bool{
		"answered": nil,
		"hanging":  func(l driver.LeaseRef) bool { return l.Name != "x5" },
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the order in which Close sees the events is random
				inWorld(t, func(t *testing.T, w *world) {
					s := &server{releaseTime: time.Millisecond, healthy: healthy}
					c := w.clientWithLeases(200, s)
					ctx, cancel := context.WithCancel(background)
					cancel()
					began := time.Now()
					err := c.CloseWithin(ctx)
					if healthy == nil {
						noError(t, err)
					} else {
						isError(t, err, context.Canceled)
						wantUnreleased(t, err, 1)
					}
					wantWithin(t, "Close took", time.Since(began), 0, time.Second)
					wantEqual(t, "releases", s.released.Load(), 200)
					w.wantFree("x199")
				})
			}
		})
	}
}

// After an outage the client repeats a release after a pause of up to a second. If its
// ctx has ended, Close does not wait for that, and sends all releases at once.
func TestCloseWithACtxThatIsOverDoesNotWaitForThePauseAfterAnOutage(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		var leases []*pawl.Lease
		for i := range 100 {
			leases = append(leases, must(c.Mutex("x"+strconv.Itoa(i), pawl.WithTTL(time.Hour)).Lock(background))(t))
		}
		up := net.down()
		for _, lease := range leases {
			go lease.Release(background)
		}
		time.Sleep(time.Minute)
		for before := net.count("release"); net.count("release") == before; {
			time.Sleep(time.Millisecond)
		}
		up()
		ctx, cancel := context.WithCancel(background)
		cancel()
		took, err := timed(func() error { return c.CloseWithin(ctx) })
		if err != nil || took > 0 {
			t.Errorf("Close took %v: %v; want no wait, and no error", took, err)
		}
		for i := range leases {
			w.wantFree("x" + strconv.Itoa(i))
		}
	})
}

// A driver that closes may wait for its requests without a bound. Close is bounded all
// the same, even if a release hangs, too.
func TestCloseIsBoundedWhenTheDriverTakesLonger(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, takes, longest time.Duration
		hangs                   bool // the release hangs, too
		want                    error
	}{
		"in time":           {5 * time.Second, 2 * time.Second, 2 * time.Second, false, nil},
		"deadline of 10 ms": {10 * time.Millisecond, time.Second / 2, time.Second / 2, false, nil},
		"too late":          {5 * time.Second, time.Minute, 3 * time.Second, false, pawl.ErrUnavailable},
		"ended ctx":         {0, time.Minute, time.Second, false, pawl.ErrUnavailable},
		"no deadline":       {-1, time.Minute, 3 * time.Second, false, pawl.ErrUnavailable},
		"a release, too":    {-1, time.Minute, 3 * time.Second, true, pawl.ErrUnavailable},
		"both, deadline":    {time.Second, time.Minute, 2600 * time.Millisecond, true, context.DeadlineExceeded},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			s := &server{healthy: func(driver.LeaseRef) bool { return !c.hangs }}
			client := w.clientWithLeases(1, s)
			s.closeTime = c.takes
			ctx := timeoutCtx(t, max(c.timeout, 0))
			if c.timeout < 0 {
				ctx = background
			}
			took, err := timed(func() error { return client.CloseWithin(ctx) })
			wantWithin(t, "Close took", took, 0, c.longest)
			if !errors.Is(err, c.want) {
				t.Errorf("Close returns %v, want %v", err, c.want)
			}
			if c.hangs {
				wantUnreleased(t, err, 1)
			} else {
				w.wantFree("x0")
			}
			time.Sleep(c.takes) // nothing is left running after that
		})
	}
}

// When a caller gives up, the backend may still grant its claim until the request ends.
// Close waits for that end, and then releases the claim.
func TestCloseWaitsForTheEndOfARequestThatWasGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, least, longest time.Duration
		want                    error
	}{
		"to its end":             {time.Minute, 7 * time.Second, 7*time.Second + driver.MaxLead, nil},
		"no longer than its ctx": {2 * time.Second, 0, 3 * time.Second, context.DeadlineExceeded},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			client, net := w.client(&pawl.Options{RequestTimeout: 7 * time.Second})
			up := net.down()
			ctx, cancel := context.WithCancel(background)
			gaveUp := make(chan error)
			go func() { gaveUp <- errOf(client.Mutex("x").Lock(ctx)) }()
			synctest.Wait()
			cancel()
			isError(t, <-gaveUp, context.Canceled)
			up()
			took, err := timed(func() error { return client.CloseWithin(timeoutCtx(t, c.timeout)) })
			if c.want == nil {
				noError(t, err)
			} else {
				isError(t, err, c.want)
			}
			wantWithin(t, "Close took", took, c.least, c.longest)
		})
	}
}

// Close does not wait for a release that fails permanently, but reports it.
func TestCloseReportsAPermanentFailure(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		wrong := &driver.Error{Backend: "test", Op: "release", Permanent: true, Err: errors.New("no permission")}
		before := must(c.Mutex("before").Lock(background))(t)
		must(c.Mutex("x").Lock(background))(t)
		net.setHooks(func(string) error { return wrong }, nil)
		isError(t, before.Release(background), pawl.ErrUnavailable)
		time.Sleep(time.Second)
		began := time.Now()
		err := c.Close()
		isError(t, err, wrong)
		wantUnreleased(t, err, 1)
		wantEqual(t, "Close took", time.Since(began), 0)
	})
}
