package swap_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func exclusiveClaims(names ...string) (claims []driver.Claim) {
	for _, name := range names {
		c := tryClaim()
		c.Name = name
		claims = append(claims, c)
	}
	return claims
}

// AcquireAll may grant from the last known values, but refuses only from current values.
func TestAcquireAllRefusesOnlyFromCurrentValues(t *testing.T) {
	v := newValues(time.Now, time.Minute)
	d, other := v.openAll(), v.openAll()
	seen := exclusiveClaims("a", "b", "c")
	must(d.AcquireAll(t.Context(), seen))(t)
	for _, c := range seen {
		noError(t, other.Release(t.Context(), driver.LeaseRef{Name: c.Name, Token: c.Token}))
	}
	if _, err := d.AcquireAll(t.Context(), exclusiveClaims("a", "b", "c")); err != nil {
		t.Errorf("AcquireAll: %v; want the names, which another client has released", err)
	}
}

// A grant of several names that was computed from an outdated value grants none of them.
func TestAcquireAllGrantsNothingFromOutdatedValues(t *testing.T) {
	v := newValues(time.Now, time.Minute)
	d, other := v.openAll(), v.openAll()
	for _, c := range exclusiveClaims("a", "b") {
		must(d.Acquire(t.Context(), c))(t)
		noError(t, d.Release(t.Context(), driver.LeaseRef{Name: c.Name, Token: c.Token}))
	}
	must(other.Acquire(t.Context(), exclusiveClaims("b")[0]))(t)
	_, err := d.AcquireAll(t.Context(), exclusiveClaims("a", "b"))
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Name != "b" {
		t.Errorf("AcquireAll: %v; want that b is held", err)
	}
	if e, err := other.Inspect(t.Context(), "a"); err != nil || len(e.Holders) > 0 {
		t.Errorf("the entry of a is %+v, %v; want a to be free", e, err)
	}
}

// All steps of a batch on one name share a swap.
func TestStepsOnOneNameShareASwap(t *testing.T) {
	c := &countingClient{valuesClient: &valuesClient{newValues(time.Now, time.Minute), "inbox"}}
	d := newDriver(c)
	var leases []driver.LeaseRef
	for _, name := range []string{"a", "b"} {
		for range 100 {
			claim := exclusiveClaims(name)[0]
			claim.Weight = 1
			must(d.Acquire(t.Context(), claim))(t)
			leases = append(leases, renewal(claim, time.Hour)...)
		}
	}
	c.swaps = 0
	renewAll(t, d, leases)
	e, err := d.Inspect(t.Context(), "a")
	noError(t, err)
	for _, h := range e.Holders {
		if h.ExpiresIn < 50*time.Minute {
			t.Errorf("a lease has %v left, and was renewed for an hour", h.ExpiresIn)
		}
	}
	if c.swaps != 1 {
		t.Errorf("%d swaps; want 1", c.swaps)
	}
}
