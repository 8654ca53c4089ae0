package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Client returns a client whose leases and retries last longer than a restart on a
// slow machine.
func Client(tb TB, d driver.Driver) *pawl.Client {
	tb.Helper()
	c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}, TTL: 2 * time.Minute, RetryFor: 2 * time.Minute})
	noError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// RidesThrough causes a fault, for example a restart of the server, while one driver
// holds a name and another one waits for it. After the fault the lease must still be
// held, and the waiter must get the name when the holder releases it.
func RidesThrough(tb TB, holder, waiter driver.Driver, fault func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // only a hang takes so long
	defer cancel()
	a, b := Client(tb, holder), Client(tb, waiter)
	held, err := a.Mutex("job").Lock(ctx)
	if err != nil {
		tb.Fatalf("Lock: %v", err)
	}
	var next *pawl.Lease
	var waitErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next, waitErr = b.Mutex("job").Lock(ctx)
	}()
	mustSucceed(tb, "the waiter joins the queue", func() error {
		e, err := a.Inspect(ctx, "job")
		if err == nil && len(e.Waiters) == 0 {
			err = pawl.ErrUnavailable
		}
		return err
	})
	fault()
	mustSucceed(tb, "the holder, after the fault", func() error { return held.Confirm(ctx) })
	select {
	case <-ended:
		tb.Fatalf("the waiter got %v, %v, but the holder has not released the name", next, waitErr)
	default:
	}
	// After ErrUnavailable, the client repeats the release in the background.
	if err := held.Release(ctx); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
		tb.Errorf("Release: %v", err)
	}
	<-ended
	if waitErr != nil {
		tb.Fatalf("the waiter: %v", waitErr)
	}
	if next.Fence() <= held.Fence() {
		tb.Errorf("fence %d after %d", next.Fence(), held.Fence())
	}
}

// mustSucceed is retryUnavailable for a request that must succeed.
func mustSucceed(tb TB, what string, request func() error) {
	tb.Helper()
	if err := retryUnavailable(request); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// retryUnavailable repeats a request while the backend is unreachable.
func retryUnavailable(request func() error) (err error) {
	for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		if err = request(); !errors.Is(err, driver.ErrUnavailable) {
			break
		}
	}
	return err
}
