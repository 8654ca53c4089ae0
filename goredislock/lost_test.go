package goredislock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestALostAnswerIsNoLostLease(t *testing.T) {
	t.Parallel()
	redistest.CheckLostReplies(t, redisscript.Renew.SHA, redisscript.Release.SHA, func(addr string) driver.Driver {
		d := newDriver(t, redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})) // no other idle connection
		t.Cleanup(func() { _ = d.Close() })
		return d
	})
}
