package swap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// failing is a client whose swaps of some names fail.
type failing struct {
	valuesClient
	fails map[string]error
}

func (c *failing) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	done, err := c.valuesClient.Swap(ctx, swaps)
	for i, s := range swaps {
		if c.fails[s.Name] != nil {
			done[i] = swap.Swapped{Err: c.fails[s.Name]}
		}
	}
	return done, err
}

// leases makes a lease on each name of a list.
func (c *failing) leases(t *testing.T, names ...string) (*locktable.Driver, []driver.LeaseRef) {
	d := locktable.New(swap.New(c, "inbox", func(driver.Signal) {}), "inbox")
	var leases []driver.LeaseRef
	for _, name := range names {
		claim := driver.Claim{Name: name, Token: driver.NewToken(), Weight: 1, Limit: 2, TTL: time.Minute}
		must(d.Acquire(t.Context(), claim))(t)
		leases = append(leases, driver.LeaseRef{Name: name, Token: claim.Token, TTL: time.Hour})
	}
	return d, leases
}

// A renewal of a name that is locked, or whose swap fails, fails by itself, with its
// name, and the others are made; also of two leases on one name.
func TestARenewalThatFailsFailsByItself(t *testing.T) {
	for says, swapped := range map[string]error{
		"locked":    fmt.Errorf("its row: %w", swap.ErrLocked),
		"too large": &driver.Error{Err: errors.New("it is full"), Permanent: true},
		"lost":      errors.New("no answer"),
	} {
		t.Run(says, func(t *testing.T) {
			c := &failing{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
			d, leases := c.leases(t, "a", "b", "b", "c", "d")
			c.fails["b"], c.fails["d"] = swapped, swapped
			answers, err := d.Renew(t.Context(), leases)
			noError(t, err)
			for i, answer := range answers {
				fails := c.fails[leases[i].Name] != nil
				failed, ok := errors.AsType[*driver.Error](answer)
				if fails != (answer != nil) || fails && (!ok || failed.Name != leases[i].Name) {
					t.Errorf("%s: %v; want it to fail: %t", leases[i].Name, answer, fails)
				}
			}
		})
	}
}

// If each one fails, it is the store that does.
func TestRenewalsThatAllFailFailTogether(t *testing.T) {
	c := &failing{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
	d, leases := c.leases(t, "a", "b")
	down := errors.New("no answer")
	c.fails["a"], c.fails["b"] = down, down
	if answers, err := d.Renew(t.Context(), leases); !errors.Is(err, down) {
		t.Errorf("%v, %v; want %v for the request", answers, err, down)
	}
}

// A renewal that fails does not keep the others from being renewed, however many there
// are.
func TestARenewalThatFailsEndsNoOther(t *testing.T) {
	c := &failing{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
	names := make([]string, 1200)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	d, leases := c.leases(t, names...)
	c.fails["job-0"] = swap.ErrLocked
	must(d.Renew(t.Context(), leases))(t)
	e, err := d.Inspect(t.Context(), "job-1199")
	noError(t, err)
	if left := e.Holders[0].ExpiresIn; left < 30*time.Minute {
		t.Errorf("the last one has %v left, and was renewed for an hour", left)
	}
}
