package sim

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// silence drops the log of go-redis: it reports connections that the simulation breaks.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silence{}) }
