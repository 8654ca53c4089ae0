package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestClaimThatArrivesAfterItsReleaseIsReleasedAgain(t *testing.T) {
	for name, begin := range map[string]func(c *pawl.Client) func(context.Context) (*pawl.Lease, error){
		"try":   func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) { return c.Mutex("x").TryLock },
		"wait":  func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) { return c.Mutex("x").Lock },
		"force": func(c *pawl.Client) func(context.Context) (*pawl.Lease, error) { return c.Mutex("x").ForceLock },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c, s := w.slow(nil, first("acquire", 600*time.Millisecond))
				ctx, cancel := context.WithCancel(background)
				time.AfterFunc(100*time.Millisecond, cancel)
				_, err := begin(c)(ctx)
				isError(t, err, context.Canceled)
				time.Sleep(time.Second)
				if len(w.entry("x").Holders) != 1 {
					t.Fatal("it did not arrive")
				}
				time.Sleep(3 * time.Second) // its end, and MaxLead
				w.free("x")
				if n := s.count("release"); n != 2 {
					t.Errorf("%d releases", n)
				}
				time.Sleep(time.Minute)
				if n := s.count("release"); n != 2 {
					t.Errorf("%d releases in all", n)
				}
			})
		})
	}
}

// Also when a later attempt was granted, and the lease was released long before the first
// one arrives.
func TestLeaseIsReleasedAgainIfAnEarlierAttemptMayStillArrive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, s := w.slow(nil, first("acquire", 2*time.Second))
		s.breaks = func(op string, n int) time.Duration { return 10 * time.Millisecond }
		lease := must(t)(c.Mutex("x").Lock(background))
		noError(t, lease.Release(background))
		w.free("x")
		time.Sleep(2500 * time.Millisecond)
		if len(w.entry("x").Holders) != 1 {
			t.Fatal("it did not arrive")
		}
		time.Sleep(time.Second)
		w.free("x")
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

func TestCloseWaitsForTheSecondRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.slow(nil, first("acquire", 2*time.Second))
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err := c.Mutex("x").TryLock(ctx)
		isError(t, err, context.Canceled)
		noError(t, c.Close(background))
		w.free("x")
		time.Sleep(5 * time.Second)
		w.free("x")
	})
}

func TestCtxThatEndsEndsTheCallThoughTheBackendHangs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.slow(nil, func(op string, _ int) time.Duration {
			if op == "acquire" {
				return -1
			}
			return 0
		})
		m := c.Mutex("x")
		for name, begin := range map[string]func(context.Context) (*pawl.Lease, error){"try": m.TryLock, "wait": m.Lock, "force": m.ForceLock} {
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(100*time.Millisecond, cancel)
			began := time.Now()
			_, err := begin(ctx)
			isError(t, err, context.Canceled)
			if took := time.Since(began); took != 100*time.Millisecond {
				t.Errorf("%s: it came back after %v", name, took)
			}
		}
	})
}

func TestGrantAfterTheEndOfTheCtxIsGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, err := pawl.New(&stubborn{&faulty{Driver: w.memory.Driver()}, 600 * time.Millisecond}, nil)
		noError(t, err)
		defer c.Close(background)
		m := c.Mutex("x")
		for _, begin := range []func(context.Context) (*pawl.Lease, error){m.TryLock, m.Lock, m.ForceLock} {
			for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
				ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
				if want == context.Canceled {
					cancel()
					ctx, cancel = context.WithCancel(background)
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				_, err := begin(ctx)
				isError(t, err, want)
				w.free("x")
				cancel()
			}
		}
	})
}

func TestGrantBySignalAfterTheEndOfTheCtxIsGivenBack(t *testing.T) {
	for range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			a, _ := w.client(nil)
			b, _ := w.client(nil)
			held := must(t)(a.Mutex("x").Lock(background))
			ctx, cancel := context.WithCancel(background)
			done := make(chan error)
			go func() { _, err := b.Mutex("x").Lock(ctx); done <- err }()
			synctest.Wait()
			cancel()
			noError(t, held.Release(background))
			isError(t, <-done, context.Canceled)
			w.free("x")
		})
	}
}

func TestForceIsReportedAsFailedOnlyWhenItsEndHasPassed(t *testing.T) {
	for name, fails := range map[string]time.Duration{"no answer": 0, "a broken connection": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				victim, _ := w.client(nil)
				held := must(t)(victim.Mutex("x").Lock(background))
				c, s := w.slow(nil, func(op string, n int) time.Duration {
					if op == "acquire" {
						return 3100 * time.Millisecond // its end is after 3 s
					}
					return 0
				})
				s.breaks = func(op string, n int) time.Duration { return fails }
				began := time.Now()
				_, err := c.Mutex("x").ForceLock(background)
				isError(t, err, pawl.ErrUnavailable)
				if took := time.Since(began); took != 3*time.Second {
					t.Errorf("it was reported after %v, and its end is after 3 s", took)
				}
				if n := s.count("acquire"); n > 20 || fails > 0 && n < 3 {
					t.Errorf("it was asked for %d times", n)
				}
				time.Sleep(time.Minute)
				noError(t, held.Err())
			})
		})
	}
}

func TestForceWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		victim, _ := w.client(nil)
		held := must(t)(victim.Mutex("x").Lock(background))
		c, f := w.client(nil)
		lost := 0
		f.set(nil, func(op string) error {
			if lost++; op == "acquire" && lost < 3 {
				return errNet
			}
			return nil
		})
		forced := must(t)(c.Mutex("x").ForceLock(background))
		synctest.Wait()
		isError(t, held.Err(), pawl.ErrLost)
		noError(t, forced.Release(background))
		w.free("x")
	})
}

func TestForceThatIsRefusedForGoodIsReportedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		wrong := &driver.Error{Backend: "test", Op: "acquire", Permanent: true, Err: errors.New("wrong password")}
		f.set(func(string) error { return wrong }, nil)
		began := time.Now()
		_, err := c.Mutex("x").ForceLock(background)
		isError(t, err, pawl.ErrUnavailable)
		if took := time.Since(began); took > 0 {
			t.Errorf("it was reported after %v", took)
		}
	})
}

// What has to be given back costs no goroutine each, and a backend that refuses is not
// asked again and again for each.
func TestBackendThatRefusesForLongIsAskedWithinBounds(t *testing.T) {
	for name, down := range map[string]func(ctx context.Context) error{
		"refuses": func(context.Context) error { return errNet },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := &gone{faulty: &faulty{Driver: w.memory.Driver()}, down: down}
				c, err := pawl.New(d, &pawl.Options{TTL: time.Hour})
				noError(t, err)
				before := runtime.NumGoroutine()
				most, tries := 0, 0
				for began := time.Now(); time.Since(began) < 500*time.Second; tries++ {
					ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
					_, err := c.Mutex("x" + strconv.Itoa(tries)).TryLock(ctx)
					isError(t, err)
					cancel()
					time.Sleep(50 * time.Millisecond)
					most = max(most, runtime.NumGoroutine()-before)
				}
				n := int(d.released.Load())
				t.Logf("%d tries: %d releases were sent, and there were %d goroutines more at most", tries, n, most)
				if most > 70 { // 64 requests under way
					t.Errorf("%d goroutines", most)
				}
				if n > tries+600 { // one each, and one a second
					t.Errorf("%d releases were sent for %d tries", n, tries)
				}
				d.up.Store(true)
				time.Sleep(10 * time.Second)
				if n := int(d.released.Load()) - n; n < tries || n > tries*11/10 {
					t.Errorf("%d releases were sent when it was back, for %d tries", n, tries)
				}
				noError(t, c.Close(background))
			})
		})
	}
}
