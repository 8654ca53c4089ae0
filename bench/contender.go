package main

import (
	"context"
	"fmt"
	"time"
)

// A contender is a lock library, as its users would set it up.
type contender struct {
	name   string
	engine string // that it is on
	// open makes a client of its own connections to a server, whose leases last ttl
	// without a renewal. It is at that address.
	open func(addr string, ttl time.Duration) (client, error)
	// quorum makes a client of several independent servers; nil for those that cannot.
	quorum func(addrs []string, ttl time.Duration) (client, error)
	// what it has, for scenarios that need it
	renews bool     // a lease is renewed while it is held
	tells  bool     // it notifies its holder of a loss
	sends  []string // the commands that it sends to lock and unlock, besides what its scripts call

	// how its lock can be taken from a holder: what is stored of it is deleted, what it
	// hangs on ends; nil where there is nothing such
	drop, end taker
}

// A client locks names. Its methods are called by many goroutines.
type client interface {
	// lock waits for the lock. lost returns a channel that is closed when the lease is
	// lost. lost may be nil. Only scenarios that use the channel call lost, because the
	// call may cost something.
	lock(ctx context.Context, name string) (unlock func() error, lost func() <-chan struct{}, err error)
	close()
}

// A keyed client says where its server keeps the lock of a name.
type keyed interface{ key(name string) string }

// redisContenders are the contenders on Redis, the floor first. Each scenario says which
// of them it compares.
func redisContenders() []contender {
	all := []contender{
		{name: "raw", open: openRaw, sends: []string{"set", "evalsha", "eval"}},
		{name: "pawl", open: openPawl, quorum: openPawlQuorum, sends: scripts, renews: true, tells: true},
		{name: "pawl (go-redis)", open: openPawlGoRedis, sends: scripts, renews: true},
		{name: "rueidislock (1 key)", open: openRueidislock(1), sends: scripts, renews: true, tells: true},
		{name: "rueidislock (3 keys)", open: openRueidislock(2), sends: scripts, renews: true, tells: true},
		{name: "redsync", open: openRedsync, quorum: openRedsyncQuorum, sends: []string{"set", "evalsha", "eval"}},
		{name: "bsm/redislock", open: openBsm, sends: scripts},
	}
	for i := range all {
		all[i].drop = dropKey
	}
	return all
}

// dropKey deletes the key of a lock.
func dropKey(s server, holder, _ client, name string) error {
	n, err := s.(*redisServer).c.Del(context.Background(), holder.(keyed).key(name)).Result()
	if err == nil && n != 1 {
		err = fmt.Errorf("there is no key %q", holder.(keyed).key(name))
	}
	return err
}

var scripts = []string{"evalsha", "eval"}
