package goredislock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func opener(t *testing.T, o redis.Options) func(addr string) driver.Driver {
	return func(addr string) driver.Driver {
		options := o
		options.Addr = addr
		d := newDriver(t, redis.NewClient(&options))
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
}

// timeouts are the two ways in which go-redis ends a request.
var timeouts = map[string]redis.Options{"by its own timeouts": {}, "by the ctx": {ContextTimeoutEnabled: true}}

func TestAbandonedAttemptsAreReleased(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	for what, o := range timeouts {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.CheckNothingIsLeft(t, opener(t, o)(redistest.Start(t).Addr))
		})
	}
}

func TestAbandonedAttemptsOnASlowConnectionAreReleased(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	for what, o := range timeouts {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.CheckASlowConnection(t, opener(t, o))
		})
	}
}

func TestAFailedForcedClaimBreaksNoLease(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	redistest.CheckAFailedForceBreaksNoLease(t, opener(t, redis.Options{}))
}

func TestACallEndsWithItsCtx(t *testing.T) {
	t.Parallel()
	for what, hang := range map[string]func(t *testing.T) (driver.Driver, func()){
		"the server is paused": func(t *testing.T) (driver.Driver, func()) {
			server := redistest.Start(t)
			d := opener(t, redis.Options{})(server.Addr)
			if _, err := d.Inspect(t.Context(), "first"); err != nil {
				t.Fatal(err)
			}
			server.Do("CLIENT", "PAUSE", "60000", "ALL")
			return d, func() {}
		},
		"all connections are taken": func(t *testing.T) (driver.Driver, func()) {
			proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
			d := opener(t, redis.Options{PoolSize: 1})(proxy.Addr)
			release := proxy.Hold()
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = d.Inspect(ctx, "first") }()
			return d, func() { cancel(); release() }
		},
		"a new connection is not answered": func(t *testing.T) (driver.Driver, func()) {
			return opener(t, redis.Options{})(redistest.SilentAddr(t)), func() {}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.CheckCallsEndWithCtx(t, func() (driver.Driver, func()) { return hang(t) })
		})
	}
}
