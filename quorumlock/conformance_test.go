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

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // a failure is said with its seed
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
