package servertest

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Damaged calls damage to make the stored entry of a held name unreadable, for a driver
// that knows the name and for one that does not. Each request for the name must then
// return a permanent error with the name and with hint in its hint. Other names must
// work, the list must continue behind the name, and the doctor must report it.
func Damaged(tb TB, one, two driver.Driver, hint string, damage func(name string)) {
	tb.Helper()
	ctx := context.Background()
	var leases []driver.LeaseRef
	for _, name := range []string{"a", "b", "c"} {
		c := Mutex(name)
		c.TTL = driver.MaxTTL
		Gets(tb, one, c)
		leases = append(leases, Lease(c))
	}
	damage("b")
	for _, d := range []driver.Driver{one, two} {
		_, acquired := d.Acquire(ctx, Mutex("b"))
		_, inspected := d.Inspect(ctx, "b")
		for _, err := range []error{acquired, inspected} {
			if e := WantDriverError(tb, err, true, hint); e.Name != "b" {
				tb.Errorf("%v; want an error about b", err)
			}
		}
		answers, err := d.Renew(ctx, leases)
		if err != nil || answers[0] != nil || answers[1] == nil || answers[2] != nil {
			tb.Errorf("Renew: %v, %v; want an error only for b", answers, err)
		}
		var listed []string
		for e, err := range d.(driver.Lister).List(ctx, "") {
			if listed = append(listed, e.Name); (err != nil) != (e.Name == "b") {
				tb.Errorf("List yields %q with the error %v", e.Name, err)
			}
		}
		if !slices.Equal(listed, []string{"a", "b", "c"}) {
			tb.Errorf("List yields the names %q", listed)
		}
		Finds(tb, d.(driver.Diagnoser), "error damaged entries", `1 cannot be read, and these names cannot be locked: "b"`)
	}
}
