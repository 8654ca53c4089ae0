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
	// open makes a client with its own connections to the server at addr. Its leases last
	// ttl without a renewal.
	open func(addr string, ttl time.Duration) (client, error)
	// quorum makes a client of several independent servers; nil if the library has none.
	quorum func(addrs []string, ttl time.Duration) (client, error)
	// The abilities of the contender, for scenarios that need them.
	renews   bool     // the library renews a lease while it is held
	notifies bool     // the library notifies a holder of the loss of its lease
	sends    []string // the commands that its client sends to lock and unlock, without those inside its scripts

	// deleteLock deletes the stored lock; nil if the contender stores none. endSession
	// ends the session or lease of the lock; nil if the lock has none.
	deleteLock, endSession remover
}

// A client locks names. Many goroutines call its methods.
type client interface {
	// lock waits for the lock. lost, which may be nil, returns a channel that is closed
	// when the lease is lost. Only scenarios that use the channel call lost, because the
	// call may be expensive.
	lock(ctx context.Context, name string) (unlock func() error, lost func() <-chan struct{}, err error)
	close()
}

// A keyedClient returns the key under which its server keeps a lock.
type keyedClient interface{ key(name string) string }

// redisContenders returns the contenders on Redis. The first one is the floor, a minimal
// lock.
func redisContenders() []contender {
	all := []contender{
		{name: "raw", open: openRaw, sends: []string{"set", "evalsha", "eval"}},
		{name: "pawl", open: openPawl, quorum: openPawlQuorum, sends: scriptCommands, renews: true, notifies: true},
		{name: "pawl (go-redis)", open: openPawlGoRedis, sends: scriptCommands, renews: true},
		{name: "rueidislock (1 key)", open: openRueidislock(1), sends: scriptCommands, renews: true, notifies: true},
		{name: "rueidislock (3 keys)", open: openRueidislock(2), sends: scriptCommands, renews: true, notifies: true},
		{name: "redsync", open: openRedsync, quorum: openRedsyncQuorum, sends: []string{"set", "evalsha", "eval"}},
		{name: "bsm/redislock", open: openBsm, sends: scriptCommands},
	}
	for i := range all {
		all[i].deleteLock = dropKey
	}
	return all
}

// dropKey deletes the key of a lock.
func dropKey(s server, holder, _ client, name string) error {
	n, err := s.(*redisServer).admin.Del(context.Background(), holder.(keyedClient).key(name)).Result()
	if err == nil && n != 1 {
		err = fmt.Errorf("the server has no key %q", holder.(keyedClient).key(name))
	}
	return err
}

// scriptCommands are the commands that run a script.
var scriptCommands = []string{"evalsha", "eval"}
