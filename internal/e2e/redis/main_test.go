// Package redis_test tests redislock and goredislock together, and goredislock over a
// Redis in virtual time.
package redis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Parallel(24)
	redis.SetLogger(silentLogger{})
	leaktest.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1",
		"github.com/redis/rueidis.(*clusterClient)._refresh.func2",
		"github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1")
}

// silentLogger discards the log of go-redis.
type silentLogger struct{}

// Printf implements the logger of go-redis.
func (silentLogger) Printf(context.Context, string, ...any) {}
