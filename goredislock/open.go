package goredislock

import (
	"cmp"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// New makes a driver over a client. Closing the driver does not close the client. Its
// error is a [*driver.InvalidError].
func New(client redis.UniversalClient, o *Options) (driver.Driver, error) {
	if engine.IsNil(client) {
		return nil, &driver.InvalidError{Argument: "client", Problem: "is nil", Allowed: "an open client"}
	}
	s := &conn{client: client}
	scriptClient := redisscript.Client{Conn: s, MinTimeout: math.MaxInt64, UntrackedReason: "go-redis has no client tracking"}
	switch c := client.(type) {
	case *redis.Ring:
		return nil, &driver.InvalidError{
			Argument: "client", Problem: "is a Ring, which uses another server if one cannot be reached, and so could grant a lock twice",
			Allowed: "a *redis.Client or a *redis.ClusterClient",
		}
	case *redis.Client:
		o := c.Options()
		scriptClient.Location, scriptClient.ReadTimeout = redisscript.DescribeDatabase(o.Addr, o.DB), o.ReadTimeout
		// go-redis waits for a connection until ctx ends. For the answer, it uses its own
		// ReadTimeout, unless its options make it use ctx.
		if o.ContextTimeoutEnabled {
			scriptClient.MinTimeout = 0
		} else if o.ReadTimeout > 0 {
			scriptClient.MinTimeout = o.ReadTimeout
		}
	case *redis.ClusterClient:
		s.cluster, scriptClient.Cluster, scriptClient.Location, scriptClient.ReadTimeout = c, true, "cluster", c.Options().ReadTimeout
	}
	s.location, scriptClient.Nodes = scriptClient.Location, s.nodes
	// go-redis checks an idle connection before it uses it, but not with TLS.
	scriptClient.IdleConns = func() int { return int(client.PoolStats().IdleConns) }
	options := redisscript.Options(*cmp.Or(o, &Options{}))
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return redisscript.New(&scriptClient, options), nil
}
