package pawl_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// Lock returns at the end of ctx, while its claim is still on its way.
func TestClaimThatArrivesAfterItsReleaseIsReleasedAgain(t *testing.T) {
	for name, begin := range map[string]func(*pawl.Mutex, context.Context) (*pawl.Lease, error){
		"try": (*pawl.Mutex).TryLock, "wait": (*pawl.Mutex).Lock, "force": (*pawl.Mutex).ForceLock,
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, s := w.slowClient(nil, delayFirst("acquire", 600*time.Millisecond))
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(100*time.Millisecond, cancel)
			took, err := timed(func() error { return errOf(begin(c.Mutex("x"), ctx)) })
			isError(t, err, context.Canceled)
			wantEqual(t, "the call returned after", took, 100*time.Millisecond)
			time.Sleep(time.Second)
			wantEqual(t, "holders after the claim has arrived", len(w.entry("x").Holders), 1)
			time.Sleep(3 * time.Second) // until the end of the attempt, and MaxLead
			w.wantFree("x")
			wantEqual(t, "releases", s.count("release"), 2)
			time.Sleep(time.Minute)
			wantEqual(t, "releases in all", s.count("release"), 2)
		})
	}
}

// The same applies if a later request was granted, and its lease was released before the
// first request arrives.
func TestLeaseIsReleasedAgainIfAnEarlierAttemptMayStillArrive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, s := w.slowClient(nil, delayFirst("acquire", 2*time.Second))
		s.failAfter = func(op string, n int) time.Duration { return 10 * time.Millisecond }
		lease := must(c.Mutex("x").Lock(background))(t)
		noError(t, lease.Release(background))
		w.wantFree("x")
		time.Sleep(2500 * time.Millisecond)
		wantEqual(t, "holders after the first claim has arrived", len(w.entry("x").Holders), 1)
		time.Sleep(time.Second)
		w.wantFree("x")
		wantEqual(t, "releases", s.count("release"), 2)
	})
}

func TestLeaseWhoseAttemptsWereAnsweredIsReleasedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, s := w.slowClient(nil, func(string, int) time.Duration { return time.Millisecond })
		noError(t, must(c.Mutex("x").Lock(background))(t).Release(background))
		held := must(c.Mutex("x").Lock(background))(t)
		ctx := timeoutCtx(t, time.Second)
		isError(t, errOf(c.Mutex("x").Lock(ctx)), pawl.ErrHeld)
		noError(t, held.Release(background))
		time.Sleep(time.Minute)
		wantEqual(t, "releases of 3 claims", s.count("release"), 3)
	})
}

// overrunDriver is a backend whose leases may last 5 s longer than their TTL, because it
// does not know the exact time of a grant.
type overrunDriver struct{ *slowDriver }

func (o *overrunDriver) Properties() driver.Properties {
	p := o.slowDriver.Properties()
	p.MaxOverrun = 5 * time.Second
	return p
}

func (o *overrunDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	ttl := c.TTL
	c.TTL += 5 * time.Second
	g, err := o.slowDriver.Acquire(ctx, c)
	g.TTL = ttl
	return g, err
}

func TestLeaseThatOutlastsItsTTLIsReleasedUntilItEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		answersReleases := false
		s := &overrunDriver{&slowDriver{Driver: engine.Full(w.memory.Driver()), sent: map[string]int{}}}
		s.delay = func(op string, _ int) time.Duration {
			if op == "release" && !answersReleases {
				return -1
			}
			return 0
		}
		c := w.clientOf(s, &pawl.Options{TTL: time.Second})
		lease := must(c.Mutex("x").Lock(background))(t)
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		time.Sleep(3 * time.Second)
		s.mu.Lock()
		answersReleases = true
		s.mu.Unlock()
		time.Sleep(1100 * time.Millisecond) // longer than the longest pause between two releases
		w.wantFree("x")
	})
}

func TestCloseWaitsForTheSecondRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.slowClient(nil, delayFirst("acquire", 2*time.Second))
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		isError(t, errOf(c.Mutex("x").TryLock(ctx)), context.Canceled)
		noError(t, c.Close())
		w.wantFree("x")
		time.Sleep(5 * time.Second)
		w.wantFree("x")
	})
}

// Releases that are not confirmed cost few goroutines, and the client bounds the requests
// to a backend that refuses them.
func TestRequestsToABackendThatRefusesForLongAreBounded(t *testing.T) {
	for name, down := range map[string]func(net *network){
		"refuses": func(net *network) { net.down() },
		"hangs":   func(net *network) { net.setStuck(allRequests) },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, net := w.client(&pawl.Options{TTL: 2 * time.Hour}) // no lease ends by itself
			down(net)
			before := runtime.NumGoroutine()
			maxGoroutines, tries := 0, 0
			for began := time.Now(); time.Since(began) < time.Hour; tries++ {
				ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
				_, err := c.Mutex("x" + strconv.Itoa(tries)).TryLock(ctx)
				isError(t, err)
				cancel()
				time.Sleep(650 * time.Millisecond)
				maxGoroutines = max(maxGoroutines, runtime.NumGoroutine()-before)
			}
			n := net.count("release")
			t.Logf("%d tries: %d releases, and at most %d more goroutines", tries, n, maxGoroutines)
			if maxGoroutines > 70 { // 64 requests under way
				t.Errorf("%d more goroutines ran, want 70 at most", maxGoroutines)
			}
			if n > tries+3700 { // one each, and one a second
				t.Errorf("%d releases were sent for %d tries, want %d at most", n, tries, tries+3700)
			}
			net.setHooks(nil, nil)
			net.setStuck(nil)
			time.Sleep(10 * time.Second)
			wantWithin(t, "releases when the backend was back", net.count("release")-n, tries, tries*11/10)
			noError(t, c.Close())
		})
	}
}

// Some connections are silent, and others work.
func TestCloseRepeatsUnansweredReleases(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		for i := range 100 {
			must(c.Mutex("x" + strconv.Itoa(i)).Lock(background))(t)
		}
		net.setStuck(func(op string, n int) bool { return op == "release" && n%7 == 0 && n <= 63 })
		took := must(timed(c.Close))(t)
		wantWithin(t, "Close took", took, 0, 3*time.Second)
		for i := range 100 {
			w.wantFree("x" + strconv.Itoa(i))
		}
	})
}
