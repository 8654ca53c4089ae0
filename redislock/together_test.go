package redislock_test

import (
	"errors"
	"fmt"
	"strings"
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
	for range 2 { // the first round loads the script
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

// The error contains the damaged name, because the advice is to delete its keys.
func TestTheErrorContainsTheDamagedName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	for what, spoil := range map[string]func(name string){
		"a key is missing": func(name string) {
			gets(t, d, reader(name))
			server.Do("DEL", "pawl:{"+name+"}d")
		},
		"foreign bytes":  func(name string) { server.Do("SET", "pawl:{"+name+"}s", "mine") },
		"a foreign type": func(name string) { server.Do("HSET", "pawl:{"+name+"}s", "a", "b") },
	} {
		bad := what + " b"
		spoil(bad)
		_, err := d.AcquireAll(ctx, []driver.Claim{mutex(what + " a"), mutex(bad), mutex(what + " c")})
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Name != bad {
			t.Errorf("%s: %v; want an error about %q", what, err, bad)
		}
	}
}

// The package comment promises two connections, and up to two more for steps that share
// scripts. Steps that share a script still get their own fences and answers.
func TestADriverHasTwoToFourConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	count := func() int { return strings.Count(server.Do("CLIENT", "LIST"), "name=pawl") }
	d := openDriver(t, "redis://"+server.Addr)
	c, waiter := mutex("job"), queued("job")
	gets(t, d, c)
	awaitTracked(t, server)
	_, _ = d.Acquire(ctx, waiter)
	watch(t, d, "job")
	releases(t, d, c)
	if n := count(); n != 2 {
		t.Errorf("%d connections for one goroutine, want 2", n)
	}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			last := uint64(0)
			for range 50 {
				c := mutex(fmt.Sprint("many", i))
				g, err := d.Acquire(ctx, c)
				if err != nil || g.Fence <= last {
					t.Errorf("fence %d after %d, %v", g.Fence, last, err)
				}
				last = g.Fence
				if err := errors.Join(renewed(d, c), d.Release(ctx, lease(c))); err != nil {
					t.Error(err)
				}
				if err := d.Release(ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
					t.Errorf("released twice: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := count(); n < 3 || n > 4 {
		t.Errorf("%d connections for 64 goroutines, want 3 or 4", n)
	}
}
