package redislock_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Only the callers that use the damaged name get its error.
func TestADamagedNameAffectsNoOtherName(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	server.Do("LPUSH", "pawl:{job13}s", "x")
	server.Do("SET", "pawl:{job17}s", "held by me until tomorrow, please")
	damaged := func(i int) bool { return i == 13 || i == 17 }

	claims := make([]driver.Claim, 50)
	var all sync.WaitGroup
	for i := range claims {
		claims[i] = mutex(fmt.Sprint("job", i))
		all.Go(func() {
			if _, err := d.Acquire(ctx, claims[i]); (err != nil) != damaged(i) {
				t.Errorf("acquire %d: %v", i, err)
			}
		})
	}
	all.Wait()
	leases := make([]driver.LeaseRef, len(claims))
	for i, c := range claims {
		leases[i] = lease(c)
	}
	listed := 0
	for e, err := range d.List(ctx, "job") {
		if listed++; (err != nil) != (e.Name == "job13" || e.Name == "job17") {
			t.Errorf("List returns %q with the error %v", e.Name, err)
		}
	}
	if listed != len(claims) {
		t.Errorf("List returns %d names", listed)
	}
	answers, err := d.Renew(ctx, leases)
	noError(t, err)
	for i, err := range answers {
		if (err != nil) != damaged(i) {
			t.Errorf("renew %d: %v", i, err)
		}
	}
	for i, l := range leases {
		all.Go(func() {
			if err := d.Release(ctx, l); (err != nil) != damaged(i) {
				t.Errorf("release %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// Many leases are renewed with one command.
func TestRenewalsShareScripts(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?tracking=false")
	leases := make([]driver.LeaseRef, 1000)
	for i := range leases {
		c := mutex(fmt.Sprint("job", i))
		gets(t, d, c)
		leases[i] = lease(c)
	}
	for range 2 { // the first one loads the script
		server.Do("CONFIG", "RESETSTAT")
		must(d.Renew(ctx, leases))(t)
	}
	if n := commands(server, "evalsha"); n != 16 {
		t.Errorf("%d scripts for 1000 leases, want 16", n)
	}
	if n := commands(server, "get"); n != 1000 {
		t.Errorf("%d GET for 1000 leases", n)
	}
}
