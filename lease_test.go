package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestLeaseOutlivesTheCtxOfItsCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(background, key{}, "value"), time.Second)
		lease := must(t)(c.Mutex("x").Lock(ctx))
		cancel()
		time.Sleep(5 * time.Minute)
		noError(t, lease.Err())
		noError(t, lease.Context().Err())
		if lease.Context().Value(key{}) != "value" {
			t.Error("the context lost its values")
		}
		if fence, ok := pawl.FenceOf(lease.Context(), "x"); !ok || fence != lease.Fence() {
			t.Error("the context does not say the fence")
		}
		noError(t, lease.Release(ctx)) // although ctx is over
		isError(t, context.Cause(lease.Context()), pawl.ErrReleased)
		isError(t, lease.Err(), pawl.ErrReleased)
		w.free("x")
	})
}

// Until is when the next one can be granted the name: not sooner, and no later.
func TestALossSaysForHowLongTheNameStaysHeldAndClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x", pawl.WithLockDelay(time.Minute)).Lock(background))
		net.down()
		<-lease.Done()
		lost, ok := errors.AsType[*pawl.LostError](lease.Err())
		if !ok {
			t.Fatal(lease.Err())
		}
		must(t)(b.Mutex("x").Lock(background))
		if late := time.Since(lost.Until); late < 0 || late > 10*time.Millisecond {
			t.Errorf("the next one has it %v after Until", late)
		}
	})
}

func TestNilLeaseAnswersAnErrorRatherThanPanics(t *testing.T) {
	for _, l := range []*pawl.Lease{nil, {}} {
		isError(t, l.Release(background), pawl.ErrInvalid)
		isError(t, l.ReleaseNow(background), pawl.ErrInvalid)
		isError(t, l.Err(), pawl.ErrInvalid)
		<-l.Done()
		isError(t, context.Cause(l.Context()), pawl.ErrInvalid)
		if l.Name() != "" || l.Fence() != 0 || !l.Deadline().IsZero() {
			t.Errorf("%q, fence %d, until %v", l.Name(), l.Fence(), l.Deadline())
		}
	}
}
