package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Those who wait behind others in this process bear a failing backend no longer than if they had asked it.
func TestFailingBackendIsRiddenOutForThatTimeByAllWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		up := f.down()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i%4) * 2 * time.Second)
				began := time.Now()
				_, err := c.Mutex("x").Lock(background)
				if !errors.Is(err, pawl.ErrUnavailable) || !errors.Is(err, errNet) {
					t.Error(err)
				}
				if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
					t.Errorf("said after %v, want about 10 s", took)
				}
			})
		}
		wg.Wait()
		up()
		synctest.Wait()
		time.Sleep(time.Minute)
		if n := c.Gates() + c.Inboxes(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
		noError(t, must(t)(c.Mutex("x").Lock(background)).Release(background))
	})
}

func TestOutageDoesNotLookLikeALockThatIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		up := f.down()
		ctx, cancel := context.WithCancel(background)
		first := make(chan error)
		go func() { _, err := c.Mutex("x").Lock(ctx); first <- err }()
		time.Sleep(time.Second)
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Errorf("a try says %v", err)
		}
		brief, stop := context.WithTimeout(background, time.Second)
		defer stop()
		_, err = c.Mutex("x").Lock(brief) // behind the first
		isError(t, err, context.DeadlineExceeded, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Errorf("a wait says %v", err)
		}
		cancel()
		isError(t, <-first, context.Canceled)
		up()
	})
}

// A renewal that hangs never holds up the word that a lease is lost.
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

// Sockets have deadlines of their own, and end a call in the instant of ctx's deadline, or before ctx itself.
func TestDeadlineOfATryIsSaidAsSuch(t *testing.T) {
	for range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			f := &socket{faulty: &faulty{Driver: w.memory.Driver()}}
			c, err := pawl.New(f, nil)
			noError(t, err)
			defer c.Close(background)
			ctx, cancel := context.WithDeadline(background, time.Now().Add(time.Second))
			defer cancel()
			_, err = c.Mutex("x").TryLock(ctx)
			isError(t, err, context.DeadlineExceeded)
		})
	}
}

func TestBackendsOwnErrorIsReachableAndItsDeadlineIsNotTheCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		for name, failure := range map[string]error{
			"raw":     &timeoutError{"db-1"},
			"wrapped": &driver.Error{Backend: "test", Op: "acquire", Err: &timeoutError{"db-1"}},
		} {
			f.set(func(string) error { return failure }, nil)
			_, err := c.Mutex("x").TryLock(background)
			isError(t, err, pawl.ErrUnavailable)
			var own *timeoutError
			if !errors.As(err, &own) || own.host != "db-1" {
				t.Errorf("%s: the backend's own error is not in: %v", name, err)
			}
			if _, ok := errors.AsType[*driver.Error](err); !ok {
				t.Errorf("%s: no *driver.Error: %v", name, err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v Is DeadlineExceeded, but the caller set none", name, err)
			}
			f.set(nil, nil)
		}
	})
}

func TestDriverThatPanicsLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.set(nil, func(op string) error {
			if op == "acquire" {
				panic("a bug")
			}
			return nil
		})
		for _, claim := range []func(context.Context) (*pawl.Lease, error){c.Mutex("x").Lock, c.Mutex("x").TryLock} {
			func() {
				defer func() {
					if recover() != "a bug" {
						t.Error("the panic was swallowed")
					}
				}()
				_, _ = claim(background)
			}()
		}
		f.set(nil, nil)
		w.free("x")
		if n := c.Gates() + c.Inboxes() + c.Leases(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
	})
}
