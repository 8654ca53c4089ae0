package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// Clients of both packages lock the same names, and wake each other's waiters.
func TestExcludesTheClientsOfRedislock(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	one, err := goredislock.New(client, nil)
	noError(t, err)
	defer one.Close()
	two, err := concrete(redislock.Open(ctx, "redis://"+server.Addr))
	noError(t, err)
	defer two.Close()
	c := driver.Claim{Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute, QueueTTL: time.Minute, Queue: true}
	next := c
	next.Token = driver.NewToken()
	if _, err := one.Acquire(ctx, c); err != nil {
		t.Fatal(err)
	}
	heard := make(chan driver.Signal, 100)
	defer two.Listen(func(s driver.Signal) { heard <- s })()
	isRefused(t, two, next)
	noError(t, one.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token}))
	for {
		select {
		case s := <-heard:
			if s.Kind == driver.SignalGranted && s.Token == next.Token {
				return
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("nobody was told")
		}
	}
}
