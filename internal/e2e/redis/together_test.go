package redis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Clients of both packages exclude each other, and notify each other's waiters.
func TestClientsOfBothPackagesExcludeEachOther(t *testing.T) {
	server := redistest.Start(t)
	one, two := overGoRedis(t, redis.NewClient(&redis.Options{Addr: server.Addr})), openDriver(t, "redis://"+server.Addr)
	for _, d := range [][2]*redisscript.Driver{{one, two}, {two, one}} {
		signals := servertest.Listen(t, d[1])
		c, next := mutex("job"), queued("job")
		gets(t, d[0], c)
		isRefused(t, d[1], next)
		releases(t, d[0], c)
		servertest.Hear(t, signals, driver.SignalGranted, next.Token)
		releases(t, d[1], next)
	}
}
