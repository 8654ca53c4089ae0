package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Redis may remove an expired key late, among 200 000 other expiring keys a minute late.
// No waiter depends on that: the entry has the time when the lease ends, and a waiter
// has a timer for it. The benchmarks measure the delay, and this test allows a large one.
// Fences contain the server's clock, so their difference is the wait without the time
// that the test takes to start.
func TestADeadHolderIsReplacedInTimeAmongManyExpiringKeys(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	server := redistest.Start(t)
	server.Do("EVAL", "for i = 1, 200000 do redis.call('SET', 'x' .. i, '', 'PX', 1000 + i % 3000) end return 1", "0")
	for what, options := range map[string]string{"with push": "", "without push": "?push=false&tracking=false"} {
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
				t.Errorf("granted again after %v, before the lease ended", wait)
			}
			if wait > dead.TTL+10*time.Second {
				t.Errorf("granted again after %v; want a grant soon after %v", wait, dead.TTL)
			}
		})
	}
}
