package pawl_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// While the backend fails, a waiter in the local queue, which sends nothing, gives up
// after the same time as a waiter that sends requests.
func TestWaitersRetryAFailingBackendForABoundedTime(t *testing.T) {
	for _, waiters := range []int{1, 20} {
		runInWorld(t, strconv.Itoa(waiters), func(t *testing.T, w *world) {
			c, net := w.client(nil)
			up := net.down()
			var wg sync.WaitGroup
			for i := range waiters {
				wg.Go(func() {
					time.Sleep(time.Duration(i%4) * 2 * time.Second)
					took, err := timed(func() error { return errOf(c.Mutex("x").Lock(background)) })
					if !errors.Is(err, pawl.ErrUnavailable) || !errors.Is(err, errNet) {
						t.Error(err)
					}
					wantWithin(t, "Lock failed after", took, 10*time.Second, 12*time.Second)
				})
			}
			wg.Wait()
			if n := net.count("acquire"); waiters == 1 && n > 40 {
				t.Errorf("%d attempts in 10 s", n)
			}
			time.AfterFunc(5*time.Second, up)
			lease := must(c.Mutex("x").Lock(background))(t) // a waiter survives an outage of 5 s
			noError(t, lease.Release(background))
			time.Sleep(time.Minute)
			wantNothingLeft(t, c)
		})
	}
}

func TestOutageDoesNotLookLikeALockThatIsHeld(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		up := net.down()
		ctx, cancel := context.WithCancel(background)
		first := make(chan error)
		go func() { first <- errOf(c.Mutex("x").Lock(ctx)) }()
		time.Sleep(time.Second)
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Errorf("a try returns %v, which matches ErrHeld", err)
		}
		briefCtx := timeoutCtx(t, time.Second)
		_, err = c.Mutex("x").Lock(briefCtx) // behind the first
		isError(t, err, context.DeadlineExceeded, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Errorf("a wait returns %v, which matches ErrHeld", err)
		}
		cancel()
		isError(t, <-first, context.Canceled)
		up()
	})
}

func TestPermanentErrorIsReturnedAtOnce(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		wrong := &driver.Error{Backend: "test", Op: "acquire", Permanent: true, Err: errors.New("wrong password")}
		net.setHooks(func(string) error { return wrong }, nil)
		for _, lock := range []func(context.Context) (*pawl.Lease, error){c.Mutex("x").Lock, c.Mutex("x").ForceLock} {
			took, err := timed(func() error { return errOf(lock(background)) })
			isError(t, err, pawl.ErrUnavailable)
			wantEqual(t, "the lock failed after", took, 0)
		}
	})
}

func TestBackendsOwnErrorIsReachableAndItsDeadlineIsNotTheCallers(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		for name, failure := range map[string]error{
			"raw":     &timeoutError{"db-1"},
			"wrapped": &driver.Error{Backend: "test", Op: "acquire", Err: &timeoutError{"db-1"}},
		} {
			net.setHooks(func(string) error { return failure }, nil)
			_, err := c.Mutex("x").TryLock(background)
			isError(t, err, pawl.ErrUnavailable)
			var own *timeoutError
			if !errors.As(err, &own) || own.host != "db-1" {
				t.Errorf("%s: %v does not contain the backend's own error", name, err)
			}
			if _, ok := errors.AsType[*driver.Error](err); !ok {
				t.Errorf("%s: %v contains no *driver.Error", name, err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v matches DeadlineExceeded, but the caller set no deadline", name, err)
			}
			net.setHooks(nil, nil)
		}
	})
}
