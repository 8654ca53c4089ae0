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

// The end of ctx ends the call, whatever becomes of its claim.
func TestClaimThatArrivesAfterItsReleaseIsReleasedAgain(t *testing.T) {
	for name, begin := range map[string]func(*pawl.Mutex, context.Context) (*pawl.Lease, error){
		"try": (*pawl.Mutex).TryLock, "wait": (*pawl.Mutex).Lock, "force": (*pawl.Mutex).ForceLock,
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, s := w.slow(nil, first("acquire", 600*time.Millisecond))
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(100*time.Millisecond, cancel)
			took, err := after(func() error { _, err := begin(c.Mutex("x"), ctx); return err })
			if isError(t, err, context.Canceled); took != 100*time.Millisecond {
				t.Errorf("it came back after %v", took)
			}
			time.Sleep(time.Second)
			if len(w.entry("x").Holders) != 1 {
				t.Fatal("it did not arrive")
			}
			time.Sleep(3 * time.Second) // its end, and MaxLead
			w.wantFree("x")
			if n := s.count("release"); n != 2 {
				t.Errorf("%d releases", n)
			}
			time.Sleep(time.Minute)
			if n := s.count("release"); n != 2 {
				t.Errorf("%d releases in all", n)
			}
		})
	}
}

// The same applies when a later request was granted, and its lease was released long
// before the first request arrives.
func TestLeaseIsReleasedAgainIfAnEarlierAttemptMayStillArrive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, s := w.slow(nil, first("acquire", 2*time.Second))
		s.breaks = func(op string, n int) time.Duration { return 10 * time.Millisecond }
		lease := must(t)(c.Mutex("x").Lock(background))
		noError(t, lease.Release(background))
		w.wantFree("x")
		time.Sleep(2500 * time.Millisecond)
		if len(w.entry("x").Holders) != 1 {
			t.Fatal("it did not arrive")
		}
		time.Sleep(time.Second)
		w.wantFree("x")
		if n := s.count("release"); n != 2 {
			t.Errorf("%d releases", n)
		}
	})
}

func TestLeaseWhoseAttemptsWereAnsweredIsReleasedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, s := w.slow(nil, func(string, int) time.Duration { return time.Millisecond })
		noError(t, must(t)(c.Mutex("x").Lock(background)).Release(background))
		held := must(t)(c.Mutex("x").Lock(background))
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err := c.Mutex("x").Lock(ctx)
		isError(t, err, pawl.ErrHeld)
		noError(t, held.Release(background))
		time.Sleep(time.Minute)
		if n := s.count("release"); n != 3 {
			t.Errorf("%d releases of 3 claims", n)
		}
	})
}

// outlasting is a backend whose leases may last for 5 s longer than they say: the instant
// of a grant is known to it as a window.
type outlasting struct{ *slow }

func (o *outlasting) Properties() driver.Properties {
	p := o.slow.Properties()
	p.MaxOverrun = 5 * time.Second
	return p
}

func (o *outlasting) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	ttl := c.TTL
	c.TTL += 5 * time.Second
	g, err := o.slow.Acquire(ctx, c)
	g.TTL = ttl
	return g, err
}

func TestLeaseThatOutlastsItsTTLIsReleasedUntilItEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		works := false
		s := &outlasting{&slow{Driver: engine.Full(w.memory.Driver()), sent: map[string]int{}}}
		s.delay = func(op string, _ int) time.Duration {
			if op == "release" && !works {
				return -1
			}
			return 0
		}
		c := w.clientOf(s, &pawl.Options{TTL: time.Second})
		lease := must(t)(c.Mutex("x").Lock(background))
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		time.Sleep(3 * time.Second)
		s.mu.Lock()
		works = true
		s.mu.Unlock()
		time.Sleep(1100 * time.Millisecond) // the longest pause
		w.wantFree("x")
	})
}

func TestCloseWaitsForTheSecondRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.slow(nil, first("acquire", 2*time.Second))
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err := c.Mutex("x").TryLock(ctx)
		isError(t, err, context.Canceled)
		noError(t, c.Close())
		w.wantFree("x")
		time.Sleep(5 * time.Second)
		w.wantFree("x")
	})
}

// A lease that has to be given back costs no goroutine of its own, and a backend that
// refuses is not asked again and again for each.
func TestBackendThatRefusesForLongIsAskedWithinBounds(t *testing.T) {
	for name, down := range map[string]func(f *faulty){
		"refuses": func(f *faulty) { f.down() },
		"hangs":   func(f *faulty) { f.hang(everything) },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, f := w.client(&pawl.Options{TTL: 2 * time.Hour}) // no lease ends by itself
			down(f)
			before := runtime.NumGoroutine()
			most, tries := 0, 0
			for began := time.Now(); time.Since(began) < time.Hour; tries++ {
				ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
				_, err := c.Mutex("x" + strconv.Itoa(tries)).TryLock(ctx)
				isError(t, err)
				cancel()
				time.Sleep(650 * time.Millisecond)
				most = max(most, runtime.NumGoroutine()-before)
			}
			n := f.count("release")
			t.Logf("%d tries: %d releases were sent, and there were %d goroutines more at most", tries, n, most)
			if most > 70 { // 64 requests under way
				t.Errorf("%d goroutines", most)
			}
			if n > tries+3700 { // one each, and one a second
				t.Errorf("%d releases were sent for %d tries", n, tries)
			}
			f.set(nil, nil)
			f.hang(nil)
			time.Sleep(10 * time.Second)
			if n := f.count("release") - n; n < tries || n > tries*11/10 {
				t.Errorf("%d releases were sent when it was back, for %d tries", n, tries)
			}
			noError(t, c.Close())
		})
	}
}

// Some connections are silent, and others work.
func TestCloseSendsAgainWhatASilentConnectionSwallowed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		for i := range 100 {
			must(t)(c.Mutex("x" + strconv.Itoa(i)).Lock(background))
		}
		f.hang(func(op string, n int) bool { return op == "release" && n%7 == 0 && n <= 63 })
		took, err := after(c.Close)
		noError(t, err)
		if took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		for i := range 100 {
			w.wantFree("x" + strconv.Itoa(i))
		}
	})
}
