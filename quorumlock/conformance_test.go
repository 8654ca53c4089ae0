package quorumlock_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// grace is long, so that the clients wait for all nodes: the suite checks exact results
// of steps that two clients take in turn.
const grace = time.Minute

// runConformance runs the suite on nodes whose clocks are ahead of one clock by these
// durations.
func runConformance(t *testing.T, ahead ...time.Duration) {
	clock := memlock.NewClock(time.Now())
	clocksDiffer := len(slices.Compact(slices.Clone(ahead))) > 1
	var servers []*memlock.Memory
	var clocks []func() time.Time
	for _, d := range ahead {
		clocks = append(clocks, func() time.Time { return clock.Now().Add(d) })
	}
	wipe := func(testing.TB) {
		servers = nil
		for _, now := range clocks {
			servers = append(servers, memlock.NewMemory(&memlock.Options{Now: now}))
		}
	}
	wipe(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d := connect(t, servers, clock.Now, nil)
			if !clocksDiffer {
				d.ForgetLead() // the suite computes the fences from the only clock
			}
			return d
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return connect(t, servers, clock.Now, n, clocks...)
		},
		Clock:            clock,
		Wipe:             wipe,
		NodeClocksDiffer: clocksDiffer,
		IsQuorum:         true,
	})
}

// connect opens a quorum of servers, over the suite's network if n is not nil.
func connect(t testing.TB, servers []*memlock.Memory, now func() time.Time, n *drivertest.Network, clocks ...func() time.Time) *quorumlock.Driver {
	t.Helper()
	var nodes []driver.Driver
	for i, s := range servers {
		if nodes = append(nodes, s.Driver()); n != nil {
			nodes[i] = &line{Driver: engine.Full(nodes[i]), network: n, clock: clocks[i]}
		}
	}
	d, err := asDriver(quorumlock.New(nodes, &quorumlock.Options{Now: now, Grace: grace}))
	noError(t, err)
	return d
}

func TestConformanceOfOneNode(t *testing.T) {
	skipIfShort(t, "other numbers of nodes")
	runConformance(t, 0)
}
func TestConformanceOfThreeNodes(t *testing.T) { runConformance(t, 0, 0, 0) }
func TestConformanceOfFiveNodes(t *testing.T) {
	skipIfShort(t, "other numbers of nodes")
	runConformance(t, 0, 0, 0, 0, 0)
}

// Nodes whose clocks differ grant different fences, and have to agree on one.

func TestConformanceOnClocksThatDifferALittle(t *testing.T) {
	skipIfShort(t, "other clocks")
	t.Parallel()
	runConformance(t, 0, 7*time.Microsecond, -3*time.Microsecond)
}

func TestConformanceOnClocksThatDiffer(t *testing.T) {
	skipIfShort(t, "other clocks")
	runConformance(t, 0, 200*time.Millisecond, -300*time.Millisecond)
}

func TestConformanceOnClocksThatAreWrong(t *testing.T) {
	skipIfShort(t, "other clocks")
	runConformance(t, 0, time.Hour, -time.Hour)
}

// In real time, each node expires leases and grants names at a slightly different time,
// with a fence that cannot be known before.
func TestConformanceOnClocksOfTheirOwn(t *testing.T) {
	t.Parallel()
	var servers []*memlock.Memory
	for range 3 {
		servers = append(servers, memlock.NewMemory(nil))
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return connect(t, servers, time.Now, nil) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return connect(t, servers, time.Now, n, time.Now, time.Now, time.Now)
		},
		Unit:             time.Second,
		NodeClocksDiffer: true,
		IsQuorum:         true,
	})
}

// A subtest that sleeps keeps its place among the parallel ones. With as many places as
// processors, the suite would take the sum of their times.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // a failure is reported with its seed
		panic(err)
	}
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	leaktest.Main(m)
}
