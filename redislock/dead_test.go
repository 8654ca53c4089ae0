package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Redis removes expired keys when it gets round to it: among 200 000 other keys that
// expire, that can take a minute. The entry has the holder's time, and a waiter has a
// timer for it, so no waiter depends on that. The benchmarks measure how long it takes;
// here it must only not depend on luck. The server's clock is in the fences, so the test
// measures the wait, and not its own start.
func TestADeadHolderIsReplacedInTimeAmongManyExpiringKeys(t *testing.T) {
	nightly(t, "it waits for real time")
	server := redistest.Start(t)
	server.Do("EVAL", "for i = 1, 200000 do redis.call('SET', 'x' .. i, '', 'PX', 1000 + i % 3000) end return 1", "0")
	for what, options := range map[string]string{"told": "", "not told": "?push=false&tracking=false"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := openDriver(t, "redis://"+server.Addr+options)
			locks, err := pawl.New(d, nil)
			noError(t, err)
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			defer locks.Close()
			dead := mutex(what)
			dead.TTL = time.Second
			first := gets(t, d, dead)
			lease, err := locks.Mutex(what).Lock(ctx)
			noError(t, err)
			wait := time.Duration(lease.Fence()-first.Fence) * time.Microsecond
			t.Logf("granted again after %v", wait)
			if wait < dead.TTL {
				t.Errorf("granted again after %v, before the lease was over", wait)
			}
			if wait > dead.TTL+10*time.Second {
				t.Errorf("granted again after %v; want that soon after %v", wait, dead.TTL)
			}
		})
	}
}
