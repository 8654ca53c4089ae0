package backoff

import (
	"context"
	"time"
)

// Wait waits for d. If ctx is over before that, it returns the error of ctx at once.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
