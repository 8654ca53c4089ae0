package pawl_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestReplyThatWasLostIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lost := false
		f.set(nil, func(op string) error {
			if op == "acquire" && !lost {
				lost = true
				return errNet
			}
			return nil
		})
		lease := must(t)(c.Mutex("x").Lock(background))
		if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != lease.Fence() || f.count("acquire") != 2 {
			t.Errorf("the grant that was made is not the one we have: %+v, fence %d", e, lease.Fence())
		}
		noError(t, lease.Release(background))
		w.free("x")
	})
}

func TestLatencyAboveTheTTLIsNoGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(&pawl.Options{RequestTimeout: time.Minute})
		f.latency = 3 * time.Second
		_, err := c.Mutex("x", pawl.WithTTL(2*time.Second)).Lock(background)
		isError(t, err, pawl.ErrUnavailable)
		time.Sleep(time.Minute)
		w.free("x")
	})
}

// Until the backend has said that the name is held, readers do not wait for each other,
// whether they try or wait.
func TestTryOfAReaderIsNotRefusedBecauseAnotherReaderIsAsking(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		first := make(chan *pawl.Lease)
		go func() { first <- must(t)(c.RWMutex("x").RLock(background)) }()
		time.Sleep(time.Millisecond)
		noError(t, must(t)(c.RWMutex("x").TryRLock(background)).Release(background))
		noError(t, (<-first).Release(background))
		w.free("x")
	})
}

func TestReplyOfATryThatWasLostIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.set(nil, failing("acquire"))
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Error("a failing backend looks like a held lock")
		}
		w.free("x")
	})
}

// Sockets have deadlines of their own, and may end a call at the deadline of ctx before
// ctx itself ends.
func TestDeadlineOfATryIsSaidAsSuch(t *testing.T) {
	for range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			c, f := w.client(nil)
			f.acquires = func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
				deadline, _ := ctx.Deadline()
				time.Sleep(time.Until(deadline))
				return driver.Grant{}, os.ErrDeadlineExceeded
			}
			ctx, cancel := context.WithDeadline(background, time.Now().Add(time.Second))
			defer cancel()
			_, err := c.Mutex("x").TryLock(ctx)
			isError(t, err, context.DeadlineExceeded)
		})
	}
}
