package memlock

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A name that is released in the microsecond of its grant is not idle then, because its
// fence is not in the past yet.
func TestNamesAreForgottenThatBecomeIdleAfterTheirLastStep(t *testing.T) {
	clock := NewClock(time.Now())
	m := NewMemory(&Options{Now: clock.Now})
	d := m.Driver()
	for range 100 {
		hold(t, d, "job:"+clock.Now().String(), 500, true)
		clock.Advance(time.Microsecond)
	}
	if n := m.remembered(""); n > few {
		t.Errorf("%d of 50 000 names are remembered", n)
	}
}

func TestNamesAreForgottenWhoseHoldersDied(t *testing.T) {
	clock := NewClock(time.Now())
	m := NewMemory(&Options{Now: clock.Now})
	d := m.Driver()
	hold(t, d, "dead:", 50_000, false)
	clock.Advance(2*time.Second - time.Microsecond)
	hold(t, d, "other:", 50_000, true)
	if n := m.remembered("dead:"); n != 50_000 {
		t.Fatalf("%d of 50 000 names are remembered while they are closed", n)
	}
	clock.Advance(time.Microsecond)
	hold(t, d, "more:", 100_000, true)
	if n := m.remembered("dead:"); n > 0 {
		t.Errorf("%d names are remembered whose clients died", n)
	}
}

// Names that are held for long, or again and again, do not make the list of names grow.
func TestTheListOfNamesToForgetDoesNotGrow(t *testing.T) {
	m := NewMemory(nil)
	d := m.Driver()
	c := driver.Claim{
		Name: "x", Owner: driver.Owner{Client: "c"}, Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Hour,
	}
	for n := range 20_000 {
		c.Token = driver.NewToken()
		if _, err := d.Acquire(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if n%5 == 0 { // an odd step now and then, so that sweeps find it held as well
			_, _ = d.Renew(context.Background(), []driver.LeaseRef{{Name: "x", Token: c.Token, TTL: time.Hour}})
		}
		if err := d.Release(context.Background(), driver.LeaseRef{Name: "x", Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.table.shard("x").later); n > 4*sweepEvery {
		t.Errorf("%d births of one name are on the list", n)
	}
}

// A value is more than a fence: no shard remembers it for its names.
func TestAValueIsRememberedForADayAfterItWasWritten(t *testing.T) {
	clock := NewClock(time.Now())
	d := NewMemory(&Options{Now: clock.Now}).Driver()
	c := driver.Claim{
		Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited,
		TTL: 2 * keepValues, Value: []byte("one"),
	}
	if _, err := d.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	clock.Advance(keepValues)
	l := driver.LeaseRef{Name: c.Name, Token: c.Token, Value: []byte("two")}
	if err := d.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		later time.Duration
		want  string
	}{{keepValues - time.Microsecond, "two"}, {time.Microsecond, ""}} {
		clock.Advance(x.later)
		_ = d.Release(t.Context(), l) // a step: the next one forgets
		if e, err := d.Inspect(t.Context(), c.Name); err != nil || string(e.Value) != x.want {
			t.Errorf("it keeps %q, %v; want %q", e.Value, err, x.want)
		}
	}
}
