package swap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// counting is a client that counts its requests, and whose clock needs a while for each
// question, as on a busy machine.
type counting struct {
	*valuesClient
	loads, swaps  int
	took, perStep time.Duration // the clock has gone on by took, and each step needs perStep
	half          bool          // the first half of each batch of swaps fails
}

func (c *counting) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	c.loads++
	return c.valuesClient.Load(ctx, names)
}

func (c *counting) Time(ctx context.Context) (swap.Window, error) {
	c.took += c.perStep
	return c.valuesClient.Time(ctx)
}

func (c *counting) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	c.swaps++
	if !c.half {
		return c.valuesClient.Swap(ctx, swaps)
	}
	vain := len(swaps) / 2
	done, err := c.valuesClient.Swap(ctx, swaps[vain:])
	return append(make([]swap.Swapped, vain), done...), err
}

// A thousand renewals are one request of the store, even where computing them takes more
// time than a window is wide. Where it takes many times as long, they are not a thousand.
// If some swaps of a request fail, the rest is one request again, and not one for each
// name.
func TestAThousandStepsAreFewRequests(t *testing.T) {
	for what, tt := range map[string]struct {
		perStep time.Duration
		half    bool
		most    int
	}{
		"on a busy machine":         {80 * time.Microsecond, false, 1},
		"on a slow machine":         {400 * time.Microsecond, false, 20},
		"of which some are in vain": {0, true, 20},
	} {
		t.Run(what, func(t *testing.T) {
			var c *counting
			began := time.Now()
			v := newValues(func() time.Time { return began.Add(c.took) }, 50*time.Millisecond)
			c = &counting{valuesClient: &valuesClient{v, "inbox"}, perStep: tt.perStep}
			d := locktable.New(swap.New(c, "inbox", func(driver.Signal) {}), "inbox")
			var leases []driver.LeaseRef
			for i := range 1000 {
				claim := exclusiveOn(fmt.Sprint("job ", i))[0]
				must(d.Acquire(t.Context(), claim))(t)
				leases = append(leases, renewal(claim, 2*time.Minute)...)
			}
			c.loads, c.swaps, c.half = 0, 0, tt.half
			renewsAll(t, d, leases)
			if c.swaps > tt.most || !tt.half && c.loads > 0 {
				t.Errorf("%d loads and %d swaps; want at most %d swaps", c.loads, c.swaps, tt.most)
			}
		})
	}
}

func renewsAll(t *testing.T, d driver.Driver, leases []driver.LeaseRef) {
	t.Helper()
	answers, err := d.Renew(t.Context(), leases)
	noError(t, errors.Join(append(answers, err)...))
}

// tardy is a client whose first swaps of a name fail, and that looks at what it gets.
type tardy struct {
	*valuesClient
	t     *testing.T
	spoil func(s *swap.Swap)
	times int
}

func (c *tardy) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	var names []string
	spoiled := -1
	for i, s := range swaps {
		if slices.Contains(names, s.Name) {
			c.t.Errorf("two swaps of %q in one request", s.Name)
		}
		names = append(names, s.Name)
		if s.Name == "n" && c.times > 0 {
			c.times--
			spoiled = i
			c.spoil(&swaps[i])
		}
	}
	did, err := c.valuesClient.Swap(ctx, swaps)
	if spoiled >= 0 && err == nil && did[spoiled].Done {
		c.t.Error("it has not failed")
	}
	return did, err
}

// Of two steps of a batch on one name, the first comes first even if it was late, or
// another client had changed the name.
func TestStepsOnOneNameKeepTheirOrder(t *testing.T) {
	for what, spoil := range map[string]func(s *swap.Swap){
		"late":    func(s *swap.Swap) { s.Window.To = 0 },
		"changed": func(s *swap.Swap) { s.Version++ },
	} {
		for times := range 4 {
			c := &tardy{valuesClient: &valuesClient{newValues(time.Now, time.Minute), "inbox"}, t: t, spoil: spoil}
			d := locktable.New(swap.New(c, "inbox", func(driver.Signal) {}), "inbox")
			var leases []driver.LeaseRef
			for _, claim := range exclusiveOn("n", "m") {
				must(d.Acquire(t.Context(), claim))(t)
				for _, value := range []string{"first", "second"} {
					l := renewal(claim, time.Minute)[0]
					l.Value = []byte(value)
					leases = append(leases, l)
				}
			}
			c.times = times
			renewsAll(t, d, leases)
			if e, err := d.Inspect(t.Context(), "n"); err != nil || string(e.Value) != "second" {
				t.Errorf("%s %d times: the name keeps %q (%v); want what came second", what, times, e.Value, err)
			}
		}
	}
}
