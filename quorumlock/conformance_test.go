package quorumlock_test

import (
	"flag"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
	"go.uber.org/goleak"
)

// The clients of a quorum in the conformance suite have patience with its nodes: the suite does one thing after the
// other, from two clients, and looks at the exact result of each. None of its facts is excused.
const patience = time.Minute

func conforms(t *testing.T, n int) {
	clock := memlock.NewClock(time.Now())
	var servers []*memlock.Memory
	wipe := func(testing.TB) {
		servers = nil
		for range n {
			servers = append(servers, memlock.NewMemory(&memlock.Options{Now: clock.Now}))
		}
	}
	wipe(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			var nodes []driver.Driver
			for _, s := range servers {
				nodes = append(nodes, s.Driver())
			}
			d, err := quorumlock.New(nodes, &quorumlock.Options{Now: clock.Now, Grace: patience})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Clock: clock,
		Wipe:  wipe,
	})
}

func TestConformanceOfOneNode(t *testing.T)    { conforms(t, 1) }
func TestConformanceOfThreeNodes(t *testing.T) { conforms(t, 3) }
func TestConformanceOfFiveNodes(t *testing.T)  { conforms(t, 5) }

// Nodes whose clocks are their own, as they are in life: each grants a fence of its own, expires what it has at an
// instant of its own, and passes a name on at one.
func conformsOnItsOwnClocks(t *testing.T, skews ...time.Duration) {
	t.Parallel()
	var servers []*memlock.Memory
	start := time.Now()
	for _, skew := range skews {
		servers = append(servers, memlock.NewMemory(&memlock.Options{
			Now: func() time.Time { return start.Round(0).Add(time.Since(start) + skew) },
		}))
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			var nodes []driver.Driver
			for _, s := range servers {
				nodes = append(nodes, s.Driver())
			}
			d, err := quorumlock.New(nodes, &quorumlock.Options{Grace: patience})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Unit:       1500 * time.Millisecond,
		AgreesLate: true,
	})
}

func TestConformanceOnClocksOfTheirOwn(t *testing.T) { conformsOnItsOwnClocks(t, 0, 0, 0) }

func TestConformanceOnClocksThatDiffer(t *testing.T) {
	conformsOnItsOwnClocks(t, 0, 200*time.Millisecond, -300*time.Millisecond)
}

func TestConformanceOnClocksThatAreWrong(t *testing.T) {
	conformsOnItsOwnClocks(t, 0, time.Hour, -time.Hour)
}

// A subtest that lets time pass holds its place among the parallel ones while it sleeps: with as many places
// as processors, the real time of the whole suite would be the sum of theirs.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // a failure is said with its seed
		panic(err)
	}
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
