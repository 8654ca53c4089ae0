package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/redislock"
)

var ctx = context.Background()

// start opens a driver that is closed when the test ends.
func start(t testing.TB, url string) *redislock.Driver {
	t.Helper()
	d := open(t, url)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// mutex is a claim for all of a name.
func mutex(name string) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second, QueueTTL: 5 * time.Second,
	}
}

func lease(c driver.Claim) driver.LeaseRef {
	return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
}

func gets(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := d.Acquire(ctx, c)
	if err != nil {
		t.Fatalf("Acquire: %v; want it granted", err)
	}
	return g
}

func releases(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if err := d.Release(ctx, lease(c)); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func open(t testing.TB, url string) *redislock.Driver {
	t.Helper()
	d, err := redislock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reader is a claim that others of its kind stand beside.
func reader(name string) driver.Claim {
	c := mutex(name)
	c.Weight = 1
	return c
}

// queued is a claim that takes a place in the queue.
func queued(name string) driver.Claim {
	c := mutex(name)
	c.Queue = true
	return c
}

func renews(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
	if err != nil || answers[0] != nil {
		t.Fatalf("Renew: %v, %v; want it held", answers, err)
	}
}

// unavailable wants trouble with the backend, of this kind and with this hint.
func unavailable(t *testing.T, err error, permanent bool, hint string) {
	t.Helper()
	trouble, ok := errors.AsType[*driver.Error](err)
	if !ok || !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("%v; want a *driver.Error", err)
	}
	if trouble.Permanent != permanent || !strings.Contains(trouble.Hint, hint) || !strings.HasPrefix(trouble.Backend, "redis 127.0.0.1:") {
		t.Errorf("%+v; want permanent %v, and a hint about %q", trouble, permanent, hint)
	}
}
