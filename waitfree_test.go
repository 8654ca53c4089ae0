package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestWaitFreeEndsWhenNobodyHoldsTheName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(&pawl.Options{RetryFor: time.Second})
		noError(t, b.WaitFree(background, "x"))
		lease := must(t)(a.Mutex("x").Lock(background))
		waited := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.WaitFree(ctx, "x") }()
			return done
		}

		soon, cancel := context.WithTimeout(background, 7*time.Second)
		defer cancel()
		err := <-waited(soon)
		isError(t, err, context.DeadlineExceeded)
		isError(t, err, pawl.ErrHeld)
		isError(t, b.WaitFree(soon, "x"), context.DeadlineExceeded)

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
		isError(t, b.WaitFree(background, ""), pawl.ErrInvalid)
		isError(t, b.WaitFree(nil, "x"), pawl.ErrInvalid) //nolint:staticcheck // it is to be refused
	})
}

func TestOwnerIsTheOneOfItsLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{Labels: map[string]string{"job": "1"}})
		must(t)(c.Mutex("x").Lock(background))
		mine := c.Owner()
		if held := w.entry("x").Holders[0].Owner; held.Client != mine.Client || held.PID != mine.PID || held.Labels["job"] != "1" || mine.Labels["job"] != "1" {
			t.Errorf("it is %+v, and its lease has %+v", mine, held)
		}
		mine.Labels["job"] = "2"
		if c.Owner().Labels["job"] != "1" {
			t.Error("the caller changed the client's labels")
		}
	})
}
