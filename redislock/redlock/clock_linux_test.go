package redlock_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The clock of one server is set an hour forward and back, so that it forgets leases
// early, or late. The other two servers still have the lease: its holder keeps it, no
// other client gets it, and fences rise.
func TestTheClockOfOneServerIsSet(t *testing.T) {
	skipIfShort(t, "it sets a server's clock")
	t.Parallel()
	servers, url := threeServers(t)
	clock, env := timeshift.New(t, servers[0].Dir)
	servers[0].Kill()
	servers[0].Env = env
	servers[0].Run()
	const ttl = 3 * time.Minute // so long that no renewal restores the lease on the server
	one, two := client(t, url), client(t, url)
	lease, err := one.Mutex("job", pawl.WithTTL(ttl)).Lock(ctx)
	noError(t, err)
	last := lease.Fence()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 0} {
		clock.Set(by)
		answer := strings.Fields(servers[0].Do("TIME")) // *2 $10 SECONDS $6 MICROSECONDS
		seconds, err := strconv.ParseInt(answer[2], 10, 64)
		if off := time.Until(time.Unix(seconds, 0)) - by; err != nil || off > time.Minute || off < -time.Minute {
			t.Fatalf("the server's clock is %v away from %v: %q, %v", off, by, answer, err)
		}
		if _, err := two.Mutex("job").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
			t.Errorf("by %v: %v; want ErrHeld", by, err)
		}
		if err := lease.Confirm(ctx); err != nil {
			t.Errorf("by %v: Confirm: %v", by, err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Errorf("by %v: release: %v", by, err)
		}
		if lease, err = two.Mutex("job", pawl.WithTTL(ttl)).Lock(ctx); err != nil {
			t.Fatalf("by %v: %v", by, err)
		}
		if lease.Fence() <= last {
			t.Errorf("by %v: fence %d after %d", by, lease.Fence(), last)
		}
		last, one, two = lease.Fence(), two, one
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}
