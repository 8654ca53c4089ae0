package pawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestDriverThatAnswersNonsenseGrantsNothing(t *testing.T) {
	for name, answer := range map[string]func(driver.Claim) (driver.Grant, error){
		"no TTL":       func(driver.Claim) (driver.Grant, error) { return driver.Grant{Fence: 1, Fences: 1}, nil },
		"negative TTL": func(driver.Claim) (driver.Grant, error) { return driver.Grant{Fence: 1, TTL: -time.Hour}, nil },
		"held, without a place": func(c driver.Claim) (driver.Grant, error) {
			return driver.Grant{}, &driver.HeldError{Name: c.Name, RetryAfter: -time.Hour}
		},
		"canceled": func(driver.Claim) (driver.Grant, error) { return driver.Grant{}, context.Canceled },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			c, net := w.client(nil)
			net.acquireFunc = func(_ context.Context, c driver.Claim) (driver.Grant, error) { return answer(c) }
			ctx := timeoutCtx(t, time.Minute)
			_, err := c.Mutex("x").Lock(ctx)
			if !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, pawl.ErrHeld) || errors.Is(err, context.Canceled) {
				t.Errorf("Lock returns %v, want ErrUnavailable or ErrHeld", err)
			}
			_, err = c.Mutex("x").TryLock(ctx)
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("TryLock returns %v, want an error that does not match context.Canceled", err)
			}
			wantWithin(t, "calls of Acquire in a minute", net.count("acquire"), 0, 100)
			wantNothingLeft(t, c)
		})
	}
}

func TestGrantWithoutARangeHasOneFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fence := uint64(0)
		c, net := w.client(nil)
		net.acquireFunc = func(_ context.Context, c driver.Claim) (driver.Grant, error) {
			fence += 10
			return driver.Grant{Fence: fence, TTL: c.TTL}, nil
		}
		first := must(c.Mutex("x").Lock(background))(t)
		next := make(chan *pawl.Lease)
		go func() { next <- must(c.Mutex("x").Lock(background))(t) }()
		time.Sleep(time.Millisecond)
		_ = first.Release(background)
		wantEqual(t, "the fence of the second grant", (<-next).Fence(), 20)
	})
}

func TestRenewalWithoutAResultHasAnUnknownOutcome(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		net.renewFunc = func(context.Context, []driver.LeaseRef) ([]error, error) { return nil, nil }
		lease := must(c.Mutex("x").Lock(background))(t)
		time.Sleep(20 * time.Second)
		noError(t, lease.Err())
		time.Sleep(20 * time.Second)
		isError(t, lease.Err(), pawl.ErrLost) // no renewal was confirmed
	})
}

// A request or a WithHealth function may exceed its own deadline. The loss then matches
// the backend's error, but no error of a ctx.
func TestALossMatchesNoContextError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(&pawl.Options{TTL: 9 * time.Second})
		awaitLoss := func(lease *pawl.Lease, why pawl.Reason) error {
			<-lease.Done()
			err := lease.Err()
			loss, _ := errors.AsType[*pawl.LostError](err)
			if loss == nil || loss.Reason != why || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("%v; want a LostError (%v) that is no context error", err, why)
			}
			return err
		}
		overruns := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		awaitLoss(must(c.Mutex("y", pawl.WithHealth(overruns)).Lock(background))(t), pawl.ReasonUnhealthy)

		lease := must(c.Mutex("x").Lock(background))(t)
		refused := &driver.Error{Backend: "b", Op: "renew", Err: errors.Join(errNet, context.DeadlineExceeded)}
		net.renewFunc = func(_ context.Context, leases []driver.LeaseRef) ([]error, error) {
			return slices.Repeat([]error{refused}, len(leases)), nil
		}
		err := awaitLoss(lease, pawl.ReasonUnreachable)
		isError(t, err, pawl.ErrLost, pawl.ErrUnavailable, errNet)
		if inside, ok := errors.AsType[*driver.Error](err); !ok || inside.Backend != "b" {
			t.Errorf("the backend's own error is not in %v", err)
		}
	})
}

func TestDriverThatPanicsLeavesNothingBehind(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		net.setHooks(nil, func(op string) error {
			if op == "acquire" {
				panic("a bug")
			}
			return nil
		})
		for _, claim := range []func(context.Context) (*pawl.Lease, error){c.Mutex("x").Lock, c.Mutex("x").TryLock} {
			if inGoroutine(func() { _, _ = claim(background) }) != "a bug" {
				t.Error("the panic was swallowed")
			}
		}
		net.setHooks(nil, nil)
		w.wantFree("x")
		wantNothingLeft(t, c)
	})
}
