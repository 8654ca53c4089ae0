package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAbandonedAttemptsAreReleased(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	redistest.CheckNothingIsLeft(t, open(t, "redis://"+redistest.Start(t).Addr))
}

func TestAbandonedAttemptsOnASlowConnectionAreReleased(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	redistest.CheckASlowConnection(t, func(addr string) driver.Driver { return openDriver(t, "redis://"+addr) })
}

func TestAFailedForcedClaimBreaksNoLease(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	redistest.CheckAFailedForceBreaksNoLease(t, func(addr string) driver.Driver { return openDriver(t, "redis://"+addr) })
}

func TestACallEndsWithItsCtx(t *testing.T) {
	t.Parallel()
	for what, hang := range map[string]func(t *testing.T) (driver.Driver, func()){
		"the server is paused": func(t *testing.T) (driver.Driver, func()) {
			server := redistest.Start(t)
			d := open(t, "redis://"+server.Addr)
			gets(t, d, mutex("first"))
			server.Do("CLIENT", "PAUSE", "60000", "ALL")
			return d, func() {}
		},
		"the subscription is not answered": func(t *testing.T) (driver.Driver, func()) {
			proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
			proxy.Silence("SUBSCRIBE")
			d := open(t, "redis://"+proxy.Addr+"?tracking=false")
			release := proxy.Hold()
			return d, release
		},
		"a new connection is not answered": func(t *testing.T) (driver.Driver, func()) {
			return openLater(t, redistest.SilentAddr(t)), func() {}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.CheckCallsEndWithCtx(t, func() (driver.Driver, func()) { return hang(t) })
		})
	}
}
