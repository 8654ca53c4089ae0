package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestAHolderThatIsNotHealthyLosesItsLease(t *testing.T) {
	errUnhealthy := errors.New("no heartbeat for 10 s")
	for name, check := range map[string]func(ctx context.Context, since time.Duration) error{
		"Fails": func(_ context.Context, since time.Duration) error {
			if since > 20*time.Second {
				return errUnhealthy
			}
			return nil
		},
		"Hangs": func(ctx context.Context, since time.Duration) error {
			if since > 20*time.Second {
				<-ctx.Done()
				time.Sleep(time.Hour)
			}
			return nil
		},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, _ := w.client(&pawl.Options{TTL: 6 * time.Second})
			b, _ := w.client(nil)
			began := time.Now()
			lease := must(a.Mutex("x", pawl.WithHealth(func(ctx context.Context) error {
				return check(ctx, time.Since(began))
			})).Lock(background))(t)
			took, err := timed(func() error { must(b.Mutex("x").Lock(background))(t); return lease.Err() })
			if wantLoss(t, err, pawl.ReasonUnhealthy).Err == nil {
				t.Errorf("the loss has no reason: %v", err)
			}
			wantWithin(t, "the next holder got the lock after", took, 20*time.Second, 32*time.Second)
			time.Sleep(time.Hour) // until the function that hangs has returned
		})
	}
}
