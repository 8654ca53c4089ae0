package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// CheckSilentConnections makes a claim wait through far, whose connections go through the
// proxy. Then these connections become silent without being closed, as after the failure
// of a network device. The holder releases the name, and the signal is lost. The driver
// must notice the silence, connect again, and make the waiter repeat its claim.
func CheckSilentConnections(tb TB, proxy *Proxy, far, near driver.Driver) {
	tb.Helper()
	signals, ok := far.(driver.Signaler)
	if !ok {
		tb.Fatalf("%T has no signals", far)
	}
	received := Listen(tb, signals)
	holder, waiter := Mutex("job"), Queued("job")
	holder.TTL, waiter.TTL, waiter.QueueTTL = 10*time.Minute, 10*time.Minute, 10*time.Minute
	// Connections for requests go silent, too, so a step may have to be repeated.
	retryStep := func(what string, step func(ctx context.Context) error) {
		tb.Helper()
		basictest.Until(tb, what, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			return step(ctx)
		})
	}
	acquire := func(d driver.Driver, c driver.Claim) func(context.Context) error {
		return func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err }
	}
	retryStep("hold", acquire(near, holder))
	retryStep("wait", func(ctx context.Context) error {
		if err := acquire(far, waiter)(ctx); !errors.Is(err, driver.ErrHeld) {
			return errors.Join(errors.New("want ErrHeld"), err)
		}
		return nil
	})
	retryStep("push", func(context.Context) error { // the subscription may take some time
		if !far.Properties().PushesGrants {
			return errors.New("no push")
		}
		return nil
	})
	proxy.Freeze()
	began := time.Now()
	for len(received) > 0 {
		<-received // signals from before Freeze
	}
	retryStep("release", func(ctx context.Context) error { return near.Release(ctx, Lease(holder)) })
	select {
	case <-received:
	case <-time.After(3 * time.Minute):
		tb.Fatalf("the driver sent no signal")
	}
	if took := time.Since(began); took > time.Minute { // an idle machine needs at most 15 s
		tb.Errorf("the driver sent the signal after %v", took)
	}
	retryStep("the waiter's lock", acquire(far, waiter))
}
