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

// As in redislock: an attempt does not wait for ever for its subscription, and not at all
// after Close has ended it.
func TestASubscriptionThatIsNotAnsweredIsDoneWithout(t *testing.T) {
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
	c.Token = driver.NewToken() // one that does not hold it
	go func() {
		_, err := other.Acquire(context.WithoutCancel(ctx), c)
		answer <- err
	}()
	<-silent
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answer; !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrHeld) {
		t.Errorf("%v; want ErrClosed", err) // or ErrHeld, if the machine took a second to get here
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
