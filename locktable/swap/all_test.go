package swap_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func exclusiveOn(names ...string) (claims []driver.Claim) {
	for _, name := range names {
		c := exclusive(false)
		c.Name = name
		claims = append(claims, c)
	}
	return claims
}

// Several names are granted by what was last seen of them, and refused only by what is
// there now.
func TestAllIsRefusedByTheCurrentValues(t *testing.T) {
	v := newValues(time.Now, time.Minute)
	d, other := v.openAll(), v.openAll()
	seen := exclusiveOn("a", "b", "c")
	if _, err := d.AcquireAll(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	for _, c := range seen {
		if err := other.Release(t.Context(), driver.LeaseRef{Name: c.Name, Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.AcquireAll(t.Context(), exclusiveOn("a", "b", "c")); err != nil {
		t.Errorf("%v; want the names, which another client has given back", err)
	}
}

// A grant of several names that was computed from an outdated value grants none of them.
func TestAllIsNotGrantedByOutdatedValues(t *testing.T) {
	v := newValues(time.Now, time.Minute)
	d, other := v.openAll(), v.openAll()
	for _, c := range exclusiveOn("a", "b") {
		if _, err := d.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context(), driver.LeaseRef{Name: c.Name, Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Acquire(t.Context(), exclusiveOn("b")[0]); err != nil {
		t.Fatal(err)
	}
	_, err := d.AcquireAll(t.Context(), exclusiveOn("a", "b"))
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Name != "b" {
		t.Errorf("%v; want that b is held", err)
	}
	if e, err := other.Inspect(t.Context(), "a"); err != nil || len(e.Holders) > 0 {
		t.Errorf("%+v, %v; want a to be free", e, err)
	}
}

// Many steps on one name are one swap.
func TestStepsOnOneNameShareASwap(t *testing.T) {
	c := &countedValues{valuesClient: &valuesClient{newValues(time.Now, time.Minute), "inbox"}}
	d := locktable.New(swap.New(c, "inbox", func(driver.Signal) {}), "inbox")
	var leases []driver.LeaseRef
	for _, name := range []string{"a", "b"} {
		for range 100 {
			claim := exclusive(false)
			claim.Name, claim.Weight = name, 1
			if _, err := d.Acquire(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			leases = append(leases, driver.LeaseRef{Name: name, Token: claim.Token, TTL: time.Hour})
		}
	}
	c.swaps = 0
	answers, err := d.Renew(t.Context(), leases)
	if err := errors.Join(append(answers, err)...); err != nil {
		t.Fatal(err)
	}
	e, err := d.Inspect(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range e.Holders {
		if h.ExpiresIn < 50*time.Minute {
			t.Errorf("one of them has %v left, and was renewed for an hour", h.ExpiresIn)
		}
	}
	if c.swaps != 1 {
		t.Errorf("%d swaps; want 1", c.swaps)
	}
}
