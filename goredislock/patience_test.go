package goredislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// As in redislock: an attempt waits for its subscription for a limited time, and not
// after Close.
func TestClaimsDoNotNeedTheSubscription(t *testing.T) {
	nightly(t, "it waits for real time")
	t.Parallel()
	proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
	silent := proxy.Silence("subscribe")
	c := driver.Claim{Name: "job", Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 10 * time.Minute, Token: driver.NewToken()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	d := newDriver(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	defer d.Close()
	if _, err := d.Acquire(ctx, c); err != nil {
		t.Error(err)
	}
	<-silent
	if d.Properties().PushesGrants {
		t.Error("PushesGrants is true")
	}

	silent = proxy.Silence("subscribe")
	other := newDriver(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	answer := make(chan error, 1)
	c.Token = driver.NewToken() // the token of another claim
	go func() {
		_, err := other.Acquire(context.WithoutCancel(ctx), c)
		answer <- err
	}()
	<-silent
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answer; !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrHeld) {
		t.Errorf("%v; want ErrClosed", err) // or ErrHeld, if the machine paused for a second
	}
}

func TestASilentSubscriptionIsReplaced(t *testing.T) {
	nightly(t, "it waits for real time")
	t.Parallel()
	server := redistest.Start(t)
	proxy := servertest.StartProxy(t, server.Addr)
	far, near := newDriver(t, redis.NewClient(&redis.Options{Addr: proxy.Addr})), newDriver(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
	defer near.Close()
	defer far.Close()
	servertest.CheckSilentConnections(t, proxy, far, near)
}
