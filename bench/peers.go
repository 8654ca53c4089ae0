package main

import (
	"context"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The peers have their default settings, except the TTL. A peer that gives up by default
// polls forever here.

type rueidisLocker struct{ locker rueidislock.Locker }

func openRueidislock(majority int32) func(string, time.Duration) (client, error) {
	return func(addr string, ttl time.Duration) (client, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
			KeyMajority:  majority,
			KeyValidity:  ttl,
		})
		return rueidisLocker{l}, err
	}
}

func (r rueidisLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	held, cancel, err := r.locker.WithContext(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return func() error { cancel(); return nil }, held.Done, nil
}

func (r rueidisLocker) key(name string) string { return "rueidislock:0:" + name }
func (r rueidisLocker) close()                 { r.locker.Close() }

type redsyncLocker struct {
	clients []*redis.Client
	redsync *redsync.Redsync
	ttl     time.Duration
}

func openRedsync(addr string, ttl time.Duration) (client, error) {
	return openRedsyncQuorum([]string{addr}, ttl)
}

func openRedsyncQuorum(addrs []string, ttl time.Duration) (client, error) {
	l := &redsyncLocker{ttl: ttl}
	var pools []redsyncredis.Pool
	for _, addr := range addrs {
		c := goRedis(addr)
		l.clients, pools = append(l.clients, c), append(pools, goredis.NewPool(c))
	}
	l.redsync = redsync.New(pools...)
	return l, nil
}

func goRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
}

func (r *redsyncLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	m := r.redsync.NewMutex(name, redsync.WithExpiry(r.ttl), redsync.WithTries(1<<30))
	if err := m.LockContext(ctx); err != nil {
		return nil, nil, err
	}
	return func() error { _, err := m.UnlockContext(context.Background()); return err }, nil, nil
}

func (r *redsyncLocker) key(name string) string { return name }

func (r *redsyncLocker) close() {
	for _, c := range r.clients {
		_ = c.Close()
	}
}

type bsmLocker struct {
	redisClient *redis.Client
	locker      *bsm.Client
	ttl         time.Duration
}

func openBsm(addr string, ttl time.Duration) (client, error) {
	c := goRedis(addr)
	return &bsmLocker{c, bsm.New(c), ttl}, nil
}

func (b *bsmLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	if _, ok := ctx.Deadline(); !ok { // without a deadline Obtain gives up after one TTL
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Hour)
		defer cancel()
	}
	// Wait as its README does, but retry ten times as often: 100 ms would be hopeless.
	l, err := b.locker.Obtain(ctx, name, b.ttl, &bsm.Options{RetryStrategy: bsm.LinearBackoff(10 * time.Millisecond)})
	if err != nil {
		return nil, nil, err
	}
	return func() error { return l.Release(context.Background()) }, nil, nil
}

func (b *bsmLocker) key(name string) string { return name }
func (b *bsmLocker) close()                 { _ = b.redisClient.Close() }
