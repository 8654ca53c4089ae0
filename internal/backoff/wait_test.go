package backoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/bubble"
)

func TestWaitEndsAfterItsTimeOrWithItsCtx(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := backoff.Wait(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := backoff.Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("with a ctx of a second, after %v: %v", time.Since(began), err)
		}
	})
}
