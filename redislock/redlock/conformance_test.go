package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/quorumlock"
	"github.com/pawl-go/pawl/redislock"
)

// Short names for the helpers of all tests.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

// runConformance runs the suite on independent servers, each with its own clock, and with
// a network that reorders messages.
//
// The suite opens some hundred drivers. They share one connection to each server, because
// dialing for each driver would take longer than the suite. The suite checks exact
// results of steps that two clients take in turn. So the drivers must wait for every
// server, and their grace is long.
//
// No other test of this package runs at the same time. On a machine with few processors,
// the suite would miss its deadlines.
func runConformance(t *testing.T, n int) {
	servers, _ := startServers(t, n)
	clients := connect(t, servers, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return quorum(t, clients) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return quorum(t, connect(t, servers, n))
		},
		Unit:             time.Second,
		NodeClocksDiffer: true,
		IsQuorum:         true,
	})
}

// connect returns a client of each server, through a network if n is not nil.
func connect(t testing.TB, servers []*redistest.Server, n *drivertest.Network) (clients []rueidis.Client) {
	t.Helper()
	for _, s := range servers {
		o := rueidis.ClientOption{InitAddress: []string{s.Addr}}
		if n != nil {
			o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return n.Dial(ctx, "tcp", addr)
			}
		}
		client, err := rueidis.NewClient(o)
		noError(t, err)
		t.Cleanup(client.Close)
		clients = append(clients, client)
	}
	return clients
}

func quorum(t testing.TB, clients []rueidis.Client) driver.Driver {
	t.Helper()
	var nodes []driver.Driver
	for _, client := range clients {
		node, err := redislock.New(client, nil)
		noError(t, err)
		nodes = append(nodes, node)
	}
	d, err := quorumlock.New(nodes, &quorumlock.Options{Now: time.Now, Grace: time.Minute})
	noError(t, err)
	return d
}

func TestConformanceOnThreeServers(t *testing.T) { runConformance(t, 3) }
func TestConformanceOnFiveServers(t *testing.T) {
	skipIfShort(t, "a second topology")
	runConformance(t, 5)
}
