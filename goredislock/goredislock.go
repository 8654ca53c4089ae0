// Package goredislock keeps locks in Redis or Valkey through a go-redis client: the same
// scripts, the same keys and the same answers as redislock, whose page says what the
// server needs and what a lock costs. Clients of both packages exclude each other. Most
// programs need only New:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	d, err := goredislock.New(client, nil)
//	locks, err := pawl.New(d, nil)
//
// It has no URLs: redis: is redislock's. What can be set is in the client's own options,
// and in [Options]: a prefix for the keys, for how long fences are remembered, whether to
// subscribe, and how many replicas are waited for.
//
// # Which clients will do?
//
// *redis.Client, with Sentinel too (NewFailoverClient), and *redis.ClusterClient. A
// *redis.Ring is refused: it forgets the locks of a server that it cannot reach, and asks
// another.
//
// # What is different from redislock?
//
// go-redis cannot tell of keys that somebody deleted or evicted: a holder hears of that
// by its next renewal. A command takes about three times as long when many goroutines
// send. That is felt in a cluster; elsewhere they share scripts, and both packages are as
// fast. In a cluster it does not subscribe again by itself after a slot has moved
// (v9.23.0): a waiter in that slot is then woken by its own next look.
//
// # Do its retries matter?
//
// No: a step is sent once, whatever MaxRetries says, and once more if its connection
// turns out to be dead, or all that were idle do. The client over the driver asks again
// with the same token.
//
// # What ends a call?
//
// Its ctx, within some milliseconds, whatever ContextTimeoutEnabled says. The request
// goes on in the background until go-redis gives it up; it is not granted any more when
// it comes after the ctx's deadline.
package goredislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisoptions"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins all keys and channels. Clients that shall exclude each other have the
	// same one; it must not contain braces. Default: "pawl:".
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant,
	// at the least. When it is forgotten, the next fence is greater all the same, unless
	// the server's clock was set back past that grant. Default: 24 hours; 1 minute to 30
	// days.
	Retention time.Duration

	// NoPush is for servers, proxies and users that cannot subscribe: waiters then ask
	// now and then. Default: false; where subscribing fails the driver goes on without.
	NoPush bool

	// WaitReplicas is how many replicas have to acknowledge a grant before it is shown,
	// with Redis' WAIT: a fail-over to one of them then does not forget it. If fewer do
	// within WaitTimeout the grant is given back, and the error is a [*driver.Error] that
	// says how many did. It costs two round trips and that of the replica. Renewals do
	// not wait. docs/backends-redis.md has what it does not promise. Default: 0, no WAIT;
	// 100 at most.
	WaitReplicas int

	// WaitTimeout is how long replicas have for that; three quarters of what is left of
	// the request's ctx, if that is less. Default: 500 ms; 1 ms to 1 minute. Three
	// quarters of the client's ReadTimeout is a bound, too.
	WaitTimeout time.Duration
}

// Driver is a client of Redis. It implements driver.Driver, driver.Signaler,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser.
type Driver struct {
	*redisscript.Driver
}

// New makes a driver over a client, which stays open when the driver is closed. Its error
// is a [*driver.InvalidError].
func New(client redis.UniversalClient, o *Options) (*Driver, error) {
	s := &sender{client: client}
	switch c := client.(type) {
	case nil:
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open client"}
	case *redis.Ring:
		return nil, &driver.InvalidError{
			What: "client", Problem: "is a Ring, which asks another server when one cannot be reached, and so grants a lock twice",
			Allowed: "a *redis.Client or a *redis.ClusterClient",
		}
	case *redis.Client:
		s.where = redisoptions.Place(c.Options().Addr, c.Options().DB)
	case *redis.ClusterClient:
		s.cluster, s.where = c, "cluster"
	}
	own := Options{}
	if o != nil {
		own = *o
	}
	options := redisoptions.Options(own).Scripts()
	options.Untracked = "go-redis has no client tracking"
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return &Driver{redisscript.New(s, options)}, nil
}
