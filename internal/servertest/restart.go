package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// steady returns a client whose leases last, and whose requests are repeated, for longer
// than a restart takes on a slow machine.
func steady(tb TB, d driver.Driver) *pawl.Client {
	tb.Helper()
	c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}, TTL: 2 * time.Minute, RetryFor: 2 * time.Minute})
	noError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// RidesThrough has one driver hold a name and another one wait for it while a fault
// happens, such as a restart of the server. The lease is still held after it, and the
// waiter gets the name when the holder releases it.
func RidesThrough(tb TB, holder, waiter driver.Driver, happens func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // only a hang takes so long
	defer cancel()
	a, b := steady(tb, holder), steady(tb, waiter)
	held, err := a.Mutex("job").Lock(ctx)
	if err != nil {
		tb.Fatalf("Lock: %v", err)
	}
	var next *pawl.Lease
	var waited error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next, waited = b.Mutex("job").Lock(ctx)
	}()
	insist(tb, "the waiter joins the queue", func() error {
		e, err := a.Inspect(ctx, "job")
		if err == nil && len(e.Waiters) == 0 {
			err = pawl.ErrUnavailable
		}
		return err
	})
	happens()
	insist(tb, "the holder, after it", func() error { return held.Confirm(ctx) })
	select {
	case <-ended:
		tb.Fatalf("the waiter got %v, %v, and the holder has not released it", next, waited)
	default:
	}
	// If the request fails, the client goes on trying; a further call would say the same.
	if err := held.Release(ctx); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
		tb.Errorf("Release: %v", err)
	}
	<-ended
	if waited != nil {
		tb.Fatalf("the waiter: %v", waited)
	}
	if next.Fence() <= held.Fence() {
		tb.Errorf("fence %d after %d", next.Fence(), held.Fence())
	}
}

// insist repeats a request until the backend can be reached, and checks that it succeeds.
func insist(tb TB, what string, request func() error) {
	tb.Helper()
	if err := answer(request); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// answer repeats a request until the backend can be reached.
func answer(request func() error) (err error) {
	for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		if err = request(); !errors.Is(err, driver.ErrUnavailable) {
			break
		}
	}
	return err
}
