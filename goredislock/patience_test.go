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

// As redislock's: an attempt waits neither for ever for its subscription, nor for one
// that Close ended.
func TestASubscriptionThatIsNotAnsweredIsDoneWithout(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	silent := proxy.Silence("subscribe")
	c := driver.Claim{Name: "job", Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute, Token: driver.NewToken()}
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

// A connection can go silent without an end, when something between the two is gone. The
// subscription is pinged, and so made anew; what was published in between is lost, so
// everybody looks.
func TestASubscriptionThatWentSilentIsMadeAnew(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	d := over(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	defer d.Close()
	signals, ok := d.(driver.Signaler)
	if !ok {
		t.Fatal("no signals")
	}
	heard := make(chan driver.Signal, 100)
	defer signals.Listen(func(s driver.Signal) { heard <- s })()
	holder := driver.Claim{Name: "job", Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute, Token: driver.NewToken()}
	waiter := holder
	waiter.Token, waiter.Queue, waiter.QueueTTL = driver.NewToken(), true, time.Minute
	if _, err := d.Acquire(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), waiter); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	proxy.Freeze()
	began := time.Now()
	// Connections for requests are frozen, too, and each is given up after a second.
	brief := func(f func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return f(ctx)
	}
	for {
		for len(heard) > 0 {
			<-heard // a "look" of before
		}
		err := brief(func(ctx context.Context) error {
			return d.Release(ctx, driver.LeaseRef{Name: "job", Token: holder.Token})
		})
		if err == nil || errors.Is(err, driver.ErrNotHeld) {
			break
		}
	}
	for patience := time.After(30 * time.Second); ; {
		select {
		case <-heard:
			if brief(func(ctx context.Context) error { _, err := d.Acquire(ctx, waiter); return err }) == nil {
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				return
			}
		case <-patience:
			t.Fatal("the waiter hears nothing")
		}
	}
}
