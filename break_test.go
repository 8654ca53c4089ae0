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

func TestABreakNamesTheBreakerAndTheTimeLeft(t *testing.T) {
	for name, push := range map[string]bool{"by a signal": true, "by its next renewal": false} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, net := w.client(nil)
			net.noSignals = !push
			b, _ := w.client(&pawl.Options{ID: "breaker"})
			lease := must(a.Mutex("x").Lock(background))(t)
			noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
			broken := time.Now()
			isError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Minute}), pawl.ErrNoSuchLease)
			<-lease.Done()
			took := time.Since(broken)
			if push && took > 0 || took > 10*time.Second {
				t.Errorf("the holder was notified after %v, want at once with signals, and 10 s at most without", took)
			}
			lost := wantLoss(t, lease.Err(), pawl.ReasonBroken)
			wantEqual(t, "the breaker", lost.By.Client, "breaker")
			wantWithin(t, "from the break to StopBy", lost.StopBy.Sub(broken), time.Minute-time.Microsecond, time.Minute+time.Microsecond)
			must(b.Mutex("x").Lock(background))(t)
			wantWithin(t, "the next holder was granted the name after", time.Since(broken), time.Minute, time.Hour)
		})
	}
}

// The loss also has the person and the reason, beside the labels of the client.
func TestABreakNamesThePersonAndTheReason(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		b, _ := w.client(&pawl.Options{Labels: map[string]string{"app": "ops"}})
		lease := must(a.Mutex("x").Lock(background))(t)
		isError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, Reason: strings.Repeat("x", 300)}), pawl.ErrInvalid)
		noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, By: "anna@ops-1", Reason: "the host is gone"}))
		<-lease.Done()
		want := map[string]string{"app": "ops", "by": "anna@ops-1", "reason": "the host is gone"}
		if lost := wantLoss(t, lease.Err(), pawl.ReasonBroken); !maps.Equal(lost.By.Labels, want) {
			t.Errorf("the breaker has the labels %v, want %v", lost.By.Labels, want)
		}
		if text := lease.Err().Error(); !strings.Contains(text, ` by=anna@ops-1 reason="the host is gone"`) {
			t.Errorf("the error does not show the person and the reason: %s", text)
		}
		again := must(a.Mutex("x").Lock(background))(t)
		noError(t, b.Break(background, "x", again.Fence(), noDelay)) // without a person or reason
		<-again.Done()
		if lost := wantLoss(t, again.Err(), pawl.ReasonBroken); !maps.Equal(lost.By.Labels, map[string]string{"app": "ops"}) {
			t.Errorf("the breaker has the labels %v, want only the label of its client", lost.By.Labels)
		}
	})
}

// If the client has too many labels, the person and the reason come first.
func TestABreakNamesThePersonThoughItsClientHasManyLabels(t *testing.T) {
	for _, n := range []int{driver.MaxLabels - 1, driver.MaxLabels} {
		inWorld(t, func(t *testing.T, w *world) {
			many := map[string]string{"a": "first"}
			for i := range n - 1 {
				many[fmt.Sprintf("label-%02d", i)] = "x"
			}
			a, _ := w.client(nil)
			b, _ := w.client(&pawl.Options{Labels: many})
			lease := must(a.Mutex("x").Lock(background))(t)
			noError(t, b.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: -1, By: "anna@ops-1", Reason: "the host is gone"}))
			<-lease.Done()
			labels := wantLoss(t, lease.Err(), pawl.ReasonBroken).By.Labels
			if len(labels) != driver.MaxLabels || labels["by"] != "anna@ops-1" || labels["reason"] != "the host is gone" || labels["a"] != "first" {
				t.Errorf("the labels are %v; want %d, with by, reason and a", labels, driver.MaxLabels)
			}
			wantEqual(t, "labels of the client", len(b.Self().Labels), n)
		})
	}
}

// A holder that cannot be reached gives up within the TTL of its lease. Each of several
// holders has its own TTL.
func TestBreakClosesTheNameForTheTTLOfThisLease(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		b, _ := w.client(&pawl.Options{TTL: time.Second})
		short := must(a.RWMutex("x", pawl.WithTTL(10*time.Second)).RLock(background))(t)
		long := must(a.RWMutex("x", pawl.WithTTL(40*time.Second)).RLock(background))(t)
		net.down()
		for _, c := range []struct {
			lease *pawl.Lease
			o     *pawl.BreakOptions
			want  time.Duration
		}{{short, nil, 10 * time.Second}, {long, &pawl.BreakOptions{By: "anna@ops-1"}, 40 * time.Second}} {
			noError(t, b.Break(background, "x", c.lease.Fence(), c.o))
			isError(t, b.Break(background, "x", c.lease.Fence(), c.o), pawl.ErrNoSuchLease)
			wantEqual(t, "closed for", w.entry("x").ClosedFor, c.want)
		}
		took, err := timed(func() error { must(b.Mutex("x").Lock(background))(t); return long.Err() })
		isError(t, err, pawl.ErrLost)
		wantWithin(t, "the next holder was granted the name after", took, 40*time.Second, 41*time.Second)
	})
}

// The backend shows only the first fence of a range. A lease that was passed on inside
// its process has another one.
func TestBreakClosesTheNameForTheTTLOfALeaseThatWasPassedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{HandoffWindow: time.Second, TTL: 40 * time.Second})
		b, _ := w.client(nil)
		first := lockWithFencesToSpare(t, w, a)
		got := startLock(t, a.Mutex("x"))
		noError(t, first.Release(background))
		lease := <-got
		if shown := w.entry("x").Holders[0].Fence; shown != first.Fence() || lease.Fence() == shown {
			t.Fatalf("the lease has the fence %d, and the backend shows %d", lease.Fence(), shown)
		}
		noError(t, b.Break(background, "x", lease.Fence(), nil))
		wantEqual(t, "closed for", w.entry("x").ClosedFor, 40*time.Second)
	})
}

// ttlHider does not show the TTL of a lease.
type ttlHider struct{ driver.Driver }

func (d ttlHider) Unwrap() driver.Driver { return d.Driver }

func (d ttlHider) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	e, err := d.Driver.Inspect(ctx, name)
	for i := range e.Holders {
		e.Holders[i].TTL = 0
	}
	return e, err
}

// After a wrong guess, two holders would run at the same time.
func TestBreakRefusesToGuessATTL(t *testing.T) {
	c := must(pawl.New(ttlHider{memlock.New(nil)}, nil))(t)
	defer c.Close()
	lease := must(c.Mutex("x").Lock(background))(t)
	err := c.Break(background, "x", lease.Fence(), nil)
	isError(t, err, pawl.ErrInvalid)
	wantEqual(t, "the error", err.Error(), "pawl: Delay is missing, and the backend does not show the TTL of the lease; allowed: a time in which the holder can stop")
	noError(t, lease.Err())
	noError(t, c.Break(background, "x", lease.Fence(), &pawl.BreakOptions{Delay: time.Second}))
}
