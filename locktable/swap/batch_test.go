package swap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable/swap"
)

// countingClient is a client that counts its requests. Each step advances its clock by
// perStep, as on a busy machine.
type countingClient struct {
	*valuesClient
	loads, swaps  int
	took, perStep time.Duration // the clock has advanced by took, and each step takes perStep
	failsHalf     bool          // the first half of each batch of swaps fails
}

func (c *countingClient) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	c.loads++
	return c.valuesClient.Load(ctx, names)
}

func (c *countingClient) Time(ctx context.Context) (swap.Window, error) {
	c.took += c.perStep
	return c.valuesClient.Time(ctx)
}

func (c *countingClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	c.swaps++
	if !c.failsHalf {
		return c.valuesClient.Swap(ctx, swaps)
	}
	failed := len(swaps) / 2
	done, err := c.valuesClient.Swap(ctx, swaps[failed:])
	return append(make([]swap.Swapped, failed), done...), err
}

// A thousand renewals are one request, even if computing them takes longer than a window.
// If computing them takes many times as long, they are a few requests. If some swaps of a
// request fail, these are again one request.
func TestAThousandRenewalsAreFewRequests(t *testing.T) {
	for what, tt := range map[string]struct {
		perStep time.Duration
		half    bool
		most    int
	}{
		"on a busy machine":  {80 * time.Microsecond, false, 1},
		"on a slow machine":  {400 * time.Microsecond, false, 20},
		"of which some fail": {0, true, 20},
	} {
		t.Run(what, func(t *testing.T) {
			var c *countingClient
			began := time.Now()
			v := newValues(func() time.Time { return began.Add(c.took) }, 50*time.Millisecond)
			c = &countingClient{valuesClient: &valuesClient{v, "inbox"}, perStep: tt.perStep}
			d := newDriver(c)
			var leases []driver.LeaseRef
			for i := range 1000 {
				claim := exclusiveClaims(fmt.Sprint("job ", i))[0]
				must(d.Acquire(t.Context(), claim))(t)
				leases = append(leases, renewal(claim, 2*time.Minute)...)
			}
			c.loads, c.swaps, c.failsHalf = 0, 0, tt.half
			renewAll(t, d, leases)
			if c.swaps > tt.most || !tt.half && c.loads > 0 {
				t.Errorf("%d loads and %d swaps; want at most %d swaps", c.loads, c.swaps, tt.most)
			}
		})
	}
}

func renewAll(t *testing.T, d driver.Driver, leases []driver.LeaseRef) {
	t.Helper()
	answers, err := d.Renew(t.Context(), leases)
	noError(t, errors.Join(append(answers, err)...))
}

// failFirst is a client whose first swaps of the name n fail. It requires that a request
// has one swap for each name.
type failFirst struct {
	*valuesClient
	t        *testing.T
	makeFail func(s *swap.Swap)
	times    int
}

func (c *failFirst) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	var names []string
	changed := -1
	for i, s := range swaps {
		if slices.Contains(names, s.Name) {
			c.t.Errorf("two swaps of %q in one request", s.Name)
		}
		names = append(names, s.Name)
		if s.Name == "n" && c.times > 0 {
			c.times--
			changed = i
			c.makeFail(&swaps[i])
		}
	}
	did, err := c.valuesClient.Swap(ctx, swaps)
	if changed >= 0 && err == nil && did[changed].Done {
		c.t.Error("the swap did not fail")
	}
	return did, err
}

// waysToFail are the ways in which a swap can fail.
var waysToFail = map[string]func(s *swap.Swap){
	"late":    func(s *swap.Swap) { s.Window.To = 0 },
	"changed": func(s *swap.Swap) { s.Version++ },
}

// A claim, a place in the queue and a release get the answer of their second try, and the
// waiter gets one signal.
func TestARepeatedStepAnswersOnceAndSignalsOnce(t *testing.T) {
	for what, makeFail := range waysToFail {
		c := &failFirst{valuesClient: &valuesClient{newValues(time.Now, time.Minute), "inbox"}, t: t, makeFail: makeFail}
		d := c.connect("inbox", c)
		var signals []driver.Signal
		d.Listen(func(s driver.Signal) { signals = append(signals, s) })
		wantRepeat := func(err, want error) {
			t.Helper()
			if !errors.Is(err, want) || c.times > 0 {
				t.Errorf("%s: the error is %v after %d failures; want %v after one", what, err, 1-c.times, want)
			}
			c.times = 1
		}
		holder, waiter := tryClaim(), queuedClaim()
		holder.Name, waiter.Name = "n", "n"
		c.times = 1
		g, err := d.Acquire(t.Context(), holder)
		wantRepeat(err, nil)
		if e := must(d.Inspect(t.Context(), "n"))(t); len(e.Holders) != 1 || e.Holders[0].Fence != g.Fence {
			t.Errorf("%s: the claim got %+v, and the name has %+v", what, g, e)
		}
		_, err = d.Acquire(t.Context(), waiter)
		wantRepeat(err, driver.ErrHeld)
		wantRepeat(d.Release(t.Context(), driver.LeaseRef{Name: "n", Token: holder.Token}), nil)
		c.times = 0
		g = must(d.Acquire(t.Context(), waiter))(t)
		if len(signals) != 1 || signals[0].Kind != driver.SignalGranted || signals[0].Token != waiter.Token || signals[0].Fence != g.Fence {
			t.Errorf("%s: the signals are %+v, and the claim got %+v", what, signals, g)
		}
	}
}

// Two steps of a batch on one name keep their order, even if their swap was late or
// failed.
func TestStepsOnOneNameKeepTheirOrder(t *testing.T) {
	for what, makeFail := range waysToFail {
		for times := range 4 {
			c := &failFirst{valuesClient: &valuesClient{newValues(time.Now, time.Minute), "inbox"}, t: t, makeFail: makeFail}
			d := newDriver(c)
			var leases []driver.LeaseRef
			for _, claim := range exclusiveClaims("n", "m") {
				must(d.Acquire(t.Context(), claim))(t)
				for _, value := range []string{"first", "second"} {
					l := renewal(claim, time.Minute)[0]
					l.Value = []byte(value)
					leases = append(leases, l)
				}
			}
			c.times = times
			renewAll(t, d, leases)
			if e, err := d.Inspect(t.Context(), "n"); err != nil || string(e.Value) != "second" {
				t.Errorf("%s %d times: the name keeps %q (%v); want the second value", what, times, e.Value, err)
			}
		}
	}
}
