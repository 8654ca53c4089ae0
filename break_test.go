package pawl_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
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
				isError(t, b.Break(background, "x", lease.Fence(), time.Minute), pawl.ErrNoSuchLease)
				<-lease.Done()
				took := time.Since(broken)
				if push && took > 0 || took > 10*time.Second {
					t.Errorf("told after %v", took)
				}
				var lost *pawl.LostError
				if !errors.As(lease.Err(), &lost) || lost.Reason != pawl.ReasonBroken || lost.By.Client != "breaker" {
					t.Fatalf("told %v", lease.Err())
				}
				if until := lost.StopBy.Sub(broken); until > time.Minute+time.Microsecond || until < time.Minute-time.Microsecond {
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

// The holder also learns the person and the reason, beside the labels of the client.
func TestBrokenLeaseHearsWhoAndWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(&pawl.Options{Labels: map[string]string{"app": "ops"}})
		lease := must(t)(a.Mutex("x").Lock(background))
		isError(t, b.Break(background, "x", lease.Fence(), 0, pawl.WithReason(strings.Repeat("x", 300))), pawl.ErrInvalid)
		noError(t, b.Break(background, "x", lease.Fence(), 0, pawl.WithBy("anna@ops-1"), pawl.WithReason("the host is gone")))
		<-lease.Done()
		var lost *pawl.LostError
		want := map[string]string{"app": "ops", "by": "anna@ops-1", "reason": "the host is gone"}
		if !errors.As(lease.Err(), &lost) || !maps.Equal(lost.By.Labels, want) {
			t.Errorf("told %v", lease.Err())
		}
		if said := lease.Err().Error(); !strings.Contains(said, ` by=anna@ops-1 reason="the host is gone"`) {
			t.Errorf("it says %s", said)
		}
		again := must(t)(a.Mutex("x").Lock(background))
		noError(t, b.Break(background, "x", again.Fence(), 0)) // without what the last one said
		<-again.Done()
		if !errors.As(again.Err(), &lost) || !maps.Equal(lost.By.Labels, map[string]string{"app": "ops"}) {
			t.Errorf("told %v", again.Err())
		}
	})
}

// A client may have as many labels as there is room for. The person and the reason come
// first.
func TestBrokenLeaseHearsWhoAndWhyFromAClientWithManyLabels(t *testing.T) {
	for _, n := range []int{driver.MaxLabels - 1, driver.MaxLabels} {
		inWorld(t, func(t *testing.T, w *world) {
			many := map[string]string{"a": "first"}
			for i := range n - 1 {
				many[fmt.Sprintf("label-%02d", i)] = "x"
			}
			a, _ := w.client(nil)
			b, _ := w.client(&pawl.Options{Labels: many})
			lease := must(t)(a.Mutex("x").Lock(background))
			noError(t, b.Break(background, "x", lease.Fence(), 0, pawl.WithBy("anna@ops-1"), pawl.WithReason("the host is gone")))
			<-lease.Done()
			var lost *pawl.LostError
			if !errors.As(lease.Err(), &lost) || len(lost.By.Labels) != driver.MaxLabels ||
				lost.By.Labels["by"] != "anna@ops-1" || lost.By.Labels["reason"] != "the host is gone" || lost.By.Labels["a"] != "first" {
				t.Errorf("told %v", lease.Err())
			}
			if len(b.Self().Labels) != n {
				t.Errorf("the client has %d labels now", len(b.Self().Labels))
			}
		})
	}
}

// The caller of Break has a fence and never had a token, so the error names the fence.
func TestBreakSaysWhichFenceNobodyHas(t *testing.T) {
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close()
	err = c.Break(background, "x", 17, 0)
	isError(t, err, pawl.ErrNoSuchLease)
	if got := err.Error(); got != `pawl: no lease of "x" has the fence 17; Inspect shows those that hold it` {
		t.Errorf("it says %s", got)
	}
}
