package goredislock

import (
	"cmp"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// New makes a driver over a client, which stays open when the driver is closed. Its error
// is a [*driver.InvalidError].
func New(client redis.UniversalClient, o *Options) (driver.Driver, error) {
	if engine.IsNil(client) {
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open client"}
	}
	s := &sender{client: client}
	switch c := client.(type) {
	case *redis.Ring:
		return nil, &driver.InvalidError{
			What: "client", Problem: "is a Ring, which asks another server when one cannot be reached, and so grants a lock twice",
			Allowed: "a *redis.Client or a *redis.ClusterClient",
		}
	case *redis.Client:
		s.where = redisscript.Place(c.Options().Addr, c.Options().DB)
	case *redis.ClusterClient:
		s.cluster, s.where = c, "cluster"
	}
	own := *cmp.Or(o, &Options{})
	options := redisscript.Options{Common: redisscript.Common(own), Untracked: "go-redis has no client tracking"}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return redisscript.New(s, options), nil
}
