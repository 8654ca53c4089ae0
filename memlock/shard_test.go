package memlock

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A name that is released in the microsecond of its grant is not idle yet, because its
// fence is not in the past.
func TestNamesThatBecomeIdleAfterTheirLastStepAreDeleted(t *testing.T) {
	clock := NewClock(time.Now())
	m := NewMemory(&Options{Now: clock.Now})
	d := m.Driver()
	for range 100 {
		acquireNames(t, d, "job:"+clock.Now().String(), 500, true)
		clock.Advance(time.Microsecond)
	}
	if n := m.countNames(""); n > maxUnswept {
		t.Errorf("%d of 50 000 names are left", n)
	}
}

func TestNamesWhoseHoldersDiedAreDeleted(t *testing.T) {
	clock := NewClock(time.Now())
	m := NewMemory(&Options{Now: clock.Now})
	d := m.Driver()
	acquireNames(t, d, "dead:", 50_000, false)
	clock.Advance(2*time.Second - time.Microsecond)
	acquireNames(t, d, "other:", 50_000, true)
	if n := m.countNames("dead:"); n != 50_000 {
		t.Fatalf("%d of 50 000 names are left while they are closed", n)
	}
	clock.Advance(time.Microsecond)
	acquireNames(t, d, "more:", 100_000, true)
	if n := m.countNames("dead:"); n > 0 {
		t.Errorf("%d names of dead holders are left", n)
	}
}

// A name that is held for long, or again and again, does not make the list grow.
func TestTheSweepListDoesNotGrow(t *testing.T) {
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
		if n%5 == 0 { // an odd number of steps now and then, so that some sweeps find the name held
			_, _ = d.Renew(context.Background(), []driver.LeaseRef{{Name: "x", Token: c.Token, TTL: time.Hour}})
		}
		if err := d.Release(context.Background(), driver.LeaseRef{Name: "x", Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.table.shard("x").sweepList); n > 4*sweepEvery {
		t.Errorf("one name is on the list %d times", n)
	}
}

// A shard keeps the highest fence of all deleted names, but values only with their names.
func TestAValueIsKeptForADayAfterItWasWritten(t *testing.T) {
	clock := NewClock(time.Now())
	d := NewMemory(&Options{Now: clock.Now}).Driver()
	c := driver.Claim{
		Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited,
		TTL: 2 * valueRetention, Value: []byte("one"),
	}
	if _, err := d.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	clock.Advance(valueRetention)
	l := driver.LeaseRef{Name: c.Name, Token: c.Token, Value: []byte("two")}
	if err := d.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		after time.Duration
		want  string
	}{{valueRetention - time.Microsecond, "two"}, {time.Microsecond, ""}} {
		clock.Advance(x.after)
		_ = d.Release(t.Context(), l) // a step, which deletes a forgettable entry
		if e, err := d.Inspect(t.Context(), c.Name); err != nil || string(e.Value) != x.want {
			t.Errorf("the name keeps %q, %v; want %q", e.Value, err, x.want)
		}
	}
}
