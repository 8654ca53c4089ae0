package pawl_test

import (
	"context"
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
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, f := w.client(nil)
			f.noSignals = !push
			b, _ := w.client(&pawl.Options{ID: "breaker"})
			lease := must(t)(a.Mutex("x").Lock(background))
			noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
			broken := time.Now()
			isError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}), pawl.ErrNoSuchLease)
			<-lease.Done()
			took := time.Since(broken)
			if push && took > 0 || took > 10*time.Second {
				t.Errorf("told after %v", took)
			}
			lost := lostFor(t, lease.Err(), pawl.ReasonBroken)
			if lost.By.Client != "breaker" {
				t.Errorf("told %v", lost)
			}
			if until := lost.StopBy.Sub(broken); until > time.Minute+time.Microsecond || until < time.Minute-time.Microsecond {
				t.Errorf("told that it has %v, and it has a minute", until)
			}
			must(t)(b.Mutex("x").Lock(background))
			if took := time.Since(broken); took < time.Minute {
				t.Errorf("the next one was in after %v", took)
			}
		})
	}
}

// The holder also learns the person and the reason, beside the labels of the client.
func TestBrokenLeaseHearsWhoAndWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(&pawl.Options{Labels: map[string]string{"app": "ops"}})
		lease := must(t)(a.Mutex("x").Lock(background))
		isError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, Reason: strings.Repeat("x", 300)}), pawl.ErrInvalid)
		noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, By: "anna@ops-1", Reason: "the host is gone"}))
		<-lease.Done()
		want := map[string]string{"app": "ops", "by": "anna@ops-1", "reason": "the host is gone"}
		if lost := lostFor(t, lease.Err(), pawl.ReasonBroken); !maps.Equal(lost.By.Labels, want) {
			t.Errorf("told %v", lost)
		}
		if said := lease.Err().Error(); !strings.Contains(said, ` by=anna@ops-1 reason="the host is gone"`) {
			t.Errorf("it says %s", said)
		}
		again := must(t)(a.Mutex("x").Lock(background))
		noError(t, b.Break(background, "x", again.Fence(), atOnce)) // without what the last one said
		<-again.Done()
		if lost := lostFor(t, again.Err(), pawl.ReasonBroken); !maps.Equal(lost.By.Labels, map[string]string{"app": "ops"}) {
			t.Errorf("told %v", lost)
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
			noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, By: "anna@ops-1", Reason: "the host is gone"}))
			<-lease.Done()
			told := lostFor(t, lease.Err(), pawl.ReasonBroken).By.Labels
			if len(told) != driver.MaxLabels || told["by"] != "anna@ops-1" || told["reason"] != "the host is gone" || told["a"] != "first" {
				t.Errorf("told %v", told)
			}
			if len(b.Self().Labels) != n {
				t.Errorf("the client has %d labels now", len(b.Self().Labels))
			}
		})
	}
}

// Within the TTL of the lease, a holder that cannot be reached has given up. Each of
// several holders has its own TTL.
func TestBreakClosesTheNameForTheTTLOfThisLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		b, _ := w.client(&pawl.Options{TTL: time.Second})
		short := must(t)(a.RWMutex("x", pawl.WithTTL(10*time.Second)).RLock(background))
		long := must(t)(a.RWMutex("x", pawl.WithTTL(40*time.Second)).RLock(background))
		net.down()
		for _, c := range []struct {
			lease *pawl.Lease
			o     *pawl.BreakOptions
			want  time.Duration
		}{{short, nil, 10 * time.Second}, {long, &pawl.BreakOptions{By: "anna@ops-1"}, 40 * time.Second}} {
			noError(t, b.Break(background, "x", c.lease.Fence(), c.o))
			isError(t, b.Break(background, "x", c.lease.Fence(), c.o), pawl.ErrNoSuchLease)
			if got := w.entry("x").ClosedFor; got != c.want {
				t.Errorf("closed for %v, want %v", got, c.want)
			}
		}
		took, err := after(func() error { must(t)(b.Mutex("x").Lock(background)); return long.Err() })
		if isError(t, err, pawl.ErrLost); took < 40*time.Second || took > 41*time.Second {
			t.Errorf("the next one was in after %v", took)
		}
	})
}

// The backend shows only the first fence of a range. A lease that was passed on inside
// its process has another one.
func TestBreakClosesTheNameForTheTTLOfALeaseThatWasPassedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{HandoffWindow: time.Second, TTL: 40 * time.Second})
		b, _ := w.client(nil)
		first := lockWithFencesToSpare(t, w, a)
		got := locking(t, a.Mutex("x"))
		noError(t, first.Release(background))
		lease := <-got
		if shown := w.entry("x").Holders[0].Fence; shown != first.Fence() || lease.Fence() == shown {
			t.Fatalf("the lease has the fence %d, and the backend shows %d", lease.Fence(), shown)
		}
		noError(t, b.Break(background, "x", lease.Fence(), nil))
		if got := w.entry("x").ClosedFor; got != 40*time.Second {
			t.Errorf("closed for %v", got)
		}
	})
}

// shy does not show the TTL of a lease.
type shy struct{ driver.Driver }

func (d shy) Unwrap() driver.Driver { return d.Driver }

func (d shy) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	e, err := d.Driver.Inspect(ctx, name)
	for i := range e.Holders {
		e.Holders[i].TTL = 0
	}
	return e, err
}

// A guess would let the next holder in beside the old one.
func TestBreakGuessesNoTTL(t *testing.T) {
	c, err := pawl.New(shy{memlock.New(nil)}, nil)
	noError(t, err)
	defer c.Close()
	lease := must(t)(c.Mutex("x").Lock(background))
	err = c.Break(background, "x", lease.Fence(), nil)
	isError(t, err, pawl.ErrInvalid)
	if got := err.Error(); got != "pawl: Delay is missing, and the backend does not show the TTL of the lease; allowed: a time in which the holder can stop" {
		t.Errorf("it says %s", got)
	}
	noError(t, lease.Err())
	noError(t, c.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Second}))
}
