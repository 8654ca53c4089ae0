package pawl_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func TestBrokenLeaseHearsByWhomAndForHowLong(t *testing.T) {
	for name, push := range map[string]bool{"by a signal": true, "by its next renewal": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, f := w.client(nil)
				f.noSignals = !push
				b, _ := w.client(&pawl.Options{ID: "breaker"})
				lease := must(t)(a.Mutex("x").Lock(background))
				noError(t, b.Break(background, "x", lease.Fence(), time.Minute))
				broken := time.Now()
				isError(t, b.Break(background, "x", lease.Fence(), time.Minute), pawl.ErrNotHeld)
				<-lease.Done()
				took := time.Since(broken)
				if push && took > 0 || took > 10*time.Second {
					t.Errorf("told after %v", took)
				}
				var lost *pawl.LostError
				if !errors.As(lease.Err(), &lost) || lost.Reason != pawl.ReasonBroken || lost.By.Client != "breaker" {
					t.Fatalf("told %v", lease.Err())
				}
				if until := lost.Until.Sub(broken); until > time.Minute+time.Microsecond || until < time.Minute-time.Microsecond {
					t.Errorf("told that it has %v, and it has a minute", until)
				}
				must(t)(b.Mutex("x").Lock(background))
				if took := time.Since(broken); took < time.Minute {
					t.Errorf("the next one was in after %v", took)
				}
			})
		})
	}
}

// The caller of Break has a fence and never had a token, so the error names the fence.
func TestBreakSaysWhichFenceNobodyHas(t *testing.T) {
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close(background)
	err = c.Break(background, "x", 17, 0)
	isError(t, err, pawl.ErrNotHeld)
	if got := err.Error(); got != `pawl: no lease of "x" has the fence 17; Inspect shows those that hold it` {
		t.Errorf("it says %s", got)
	}
}
