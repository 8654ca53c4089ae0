package sim

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// silence is a log that nobody reads: what go-redis says of connections that break is
// what was meant to happen.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silence{}) }
