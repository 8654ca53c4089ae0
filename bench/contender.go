package main

import (
	"context"
	"fmt"
	"time"
)

// A contender is a lock library, as its users would set it up.
type contender struct {
	name   string
	engine string // the engine on which it locks
	// open makes a client, with connections of its own, of the server at addr. Its leases
	// last ttl without a renewal.
	open func(addr string, ttl time.Duration) (client, error)
	// quorum makes a client of several independent servers; nil if the library cannot.
	quorum func(addrs []string, ttl time.Duration) (client, error)
	// abilities of the contender, for scenarios that need them
	renews bool     // a lease is renewed while it is held
	tells  bool     // the library notifies a holder that lost its lease
	sends  []string // the commands that its client sends to lock and unlock, without those inside its scripts

	// drop deletes the stored lock; end ends the session or lease on which the lock
	// hangs; nil if the contender has neither
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

// A keyed client returns the key under which its server keeps a lock.
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
