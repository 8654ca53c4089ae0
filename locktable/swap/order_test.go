package swap_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Of two steps of a batch on one name the first failed, because another client had
// changed the name. It comes before the second all the same.
func TestStepsOnOneNameKeepTheirOrder(t *testing.T) {
	ctx := context.Background()
	v := newValues(time.Now, 50*time.Millisecond)
	a, b := v.open(), v.open()
	c := driver.Claim{Name: "n", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute}
	must(a.Acquire(ctx, c))(t)
	lease := func(ttl time.Duration, value string) driver.LeaseRef {
		return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: ttl, Value: []byte(value)}
	}
	for i := range 4 { // some stores say what there is now, some do not
		must(b.Renew(ctx, []driver.LeaseRef{lease(time.Duration(i+2)*time.Minute, "b")}))(t)
		must(a.Renew(ctx, []driver.LeaseRef{lease(time.Minute, "first"), lease(time.Minute, "second")}))(t)
		if e, err := b.Inspect(ctx, c.Name); err != nil || string(e.Value) != "second" {
			t.Errorf("the name keeps %q (%v); want what came second", e.Value, err)
		}
	}
}
