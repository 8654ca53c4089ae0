// Package redis_test tests redislock and goredislock together, and goredislock over a
// Redis in virtual time.
package redis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(24)
	redis.SetLogger(silentLogger{})
	leaktest.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1",
		"github.com/redis/rueidis.(*clusterClient)._refresh.func2",
		"github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1")
}

// silentLogger discards the log of go-redis.
type silentLogger struct{}

// Printf implements the logger of go-redis.
func (silentLogger) Printf(context.Context, string, ...any) {}

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
