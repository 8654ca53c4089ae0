package servertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// LockedRows renews the leases of 200 names together while some of their rows are locked,
// as by a transaction that has checked a lease. Only the renewals of these must fail,
// with a hint, and must succeed after unlock.
func LockedRows(tb TB, d driver.Driver, locked int, hint string, lock func(name string, fence uint64) (unlock func())) {
	tb.Helper()
	var leases []driver.LeaseRef
	var unlocks []func()
	for i := range 200 {
		c := Mutex(fmt.Sprint("job ", i))
		c.TTL = time.Hour
		g := Gets(tb, d, c)
		if i < locked {
			unlocks = append(unlocks, lock(c.Name, g.Fence))
		}
		c.TTL *= 2 // so that the renewal writes, even if the grant's window is wide
		leases = append(leases, Lease(c))
	}
	answers, err := d.Renew(context.Background(), leases)
	noError(tb, err)
	for i, answer := range answers {
		switch name := leases[i].Name; {
		case i >= locked && answer != nil:
			tb.Errorf("%s: %v; want a renewal", name, answer)
		case i < locked && WantDriverError(tb, answer, false, hint).Name != name:
			tb.Errorf("%s: %v; want the name in the error", name, answer)
		}
	}
	for _, unlock := range unlocks {
		unlock()
	}
	if answers, err = d.Renew(context.Background(), leases); err != nil || errors.Join(answers...) != nil {
		tb.Errorf("Renew after unlock: %v, %v", errors.Join(answers...), err)
	}
}
