package main

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/goredislock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/redislock/redlock"
)

// pawlLocker is Pawl with its defaults, except the TTL.
type pawlLocker struct {
	client      *pawl.Client
	redisClient *redis.Client // close closes it; nil if the driver has its own
}

func redisURL(addr string) string { return "redis://" + addr }

func openPawl(addr string, ttl time.Duration) (client, error) {
	c, err := pawl.Open(context.Background(), redisURL(addr), &pawl.Options{TTL: ttl})
	return pawlLocker{client: c}, err
}

func openPawlQuorum(addrs []string, ttl time.Duration) (client, error) {
	c, err := pawl.Open(context.Background(), "redlock://"+strings.Join(addrs, ","), &pawl.Options{TTL: ttl})
	return pawlLocker{client: c}, err
}

func openPawlGoRedis(addr string, ttl time.Duration) (client, error) {
	rc := goRedis(addr)
	d, err := goredislock.New(rc, nil)
	if err != nil {
		return nil, err
	}
	c, err := pawl.New(d, &pawl.Options{TTL: ttl})
	return pawlLocker{c, rc}, err
}

func (p pawlLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	l, err := p.client.Mutex(name).Lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	return func() error { return l.Release(context.Background()) }, l.Done, nil
}

// key returns the key with the state of a name, on which the other keys depend.
func (p pawlLocker) key(name string) string { return "pawl:{" + name + "}s" }

func (p pawlLocker) close() {
	_ = p.client.Close()
	if p.redisClient != nil {
		_ = p.redisClient.Close()
	}
}
