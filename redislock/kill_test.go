package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The server ends connections of every kind between any two steps: no lease is lost by
// that, and no waiter is left behind.
func TestConnectionsAreKilledBetweenTheSteps(t *testing.T) {
	nightly(t, "bad days")
	t.Parallel()
	for _, kind := range []string{"normal", "pubsub", "replica", "master"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			url := "redis://" + server.Addr
			servertest.Storm(t, []driver.Driver{open(t, url), open(t, url), open(t, url)}, func() { server.Do("CLIENT", "KILL", "TYPE", kind) })
		})
	}
}
