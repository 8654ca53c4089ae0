// Package redis_test tests redislock and goredislock together, and goredislock on a Redis
// in virtual time.
package redis_test

import (
	"context"
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/leaktest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil { // most of them wait
		panic(err)
	}
	redis.SetLogger(quiet{})
	leaktest.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1",
		"github.com/redis/rueidis.(*clusterClient)._refresh.func2",
		"github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1")
}

// quiet hears what go-redis would print.
type quiet struct{}

// Printf implements the logger of go-redis.
func (quiet) Printf(context.Context, string, ...any) {}
