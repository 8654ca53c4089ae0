package goredislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// As redislock's: an attempt waits neither for ever for its subscription, nor for one that Close ended.
func TestASubscriptionThatIsNotAnsweredIsDoneWithout(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	silent := proxy.Silence("subscribe")
	c := driver.Claim{Name: "job", Weight: driver.All, Limit: driver.All, TTL: time.Minute, Token: driver.NewToken()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	d := over(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	defer d.Close()
	if _, err := d.Acquire(ctx, c); err != nil {
		t.Error(err)
	}
	<-silent
	if d.Properties().Push {
		t.Error("Push is true")
	}

	silent = proxy.Silence("subscribe")
	other := over(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	answer := make(chan error, 1)
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
