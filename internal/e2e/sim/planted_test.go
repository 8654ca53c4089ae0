package sim

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A bug is one that somebody could make, or made. A checker that cannot find it proves
// nothing.
type bug struct {
	name string
	sees string // what it is found by: a part of what the checker says
	// the first that finds it, so that it is found at once; if that is no longer so, all
	// are looked through
	seed    uint64
	backend string
	make    func() planted // anew for each schedule: what it remembers is of one world
	tune    func(*plan)    // makes what it needs less rare, if it is there
}

// most is how many schedules are looked through: no matter of time, for a slow machine
// finds no less.
const most = 10_000

// find looks for a schedule that shows it.
func (b *bug) find(t *testing.T) (seed uint64, said string) {
	t.Helper()
	var found *history
	look := func(seed uint64) bool {
		p := planOver(b.backend, seed)
		if b.tune != nil {
			b.tune(p)
		}
		h := live(t, p, b.make())
		for _, v := range h.found {
			if strings.Contains(v.text, b.sees) {
				said, found = v.text, h
			}
		}
		return found != nil
	}
	if os.Getenv("PAWL_SIM_SEARCH") == "" && b.seed > 0 && look(b.seed) {
		return b.seed, said
	}
	for seed = 1; seed <= most; seed++ {
		if look(seed) {
			return seed, said
		}
	}
	return 0, ""
}

func TestPlantedBugsAreFound(t *testing.T) {
	for _, b := range slices.Concat(reviewed, faults, ofQuorums, ofStores, ofFeatures) {
		t.Run(b.name, func(t *testing.T) {
			began := time.Now()
			seed, said := b.find(t)
			if said == "" {
				t.Fatalf("not found in %d schedules", most)
			}
			t.Logf("seed %d, %v: %s", seed, time.Since(began).Round(time.Millisecond), said)
		})
	}
}

// bent is a driver that does some things in its own way.
type bent struct {
	server
	acquire func(ctx context.Context, c driver.Claim) (driver.Grant, error)
	renew   func(ctx context.Context, leases []driver.LeaseRef) ([]error, error)
	release func(ctx context.Context, l driver.LeaseRef) error
	entry   func(ctx context.Context, name string) (driver.Entry, error)
	listen  func(f func(driver.Signal)) func(driver.Signal)
	breaks  func(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error
}

func (b *bent) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if b.acquire != nil {
		return b.acquire(ctx, c)
	}
	return b.server.Acquire(ctx, c)
}

func (b *bent) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	if b.renew != nil {
		return b.renew(ctx, leases)
	}
	return b.server.Renew(ctx, leases)
}

func (b *bent) Release(ctx context.Context, l driver.LeaseRef) error {
	if b.release != nil {
		return b.release(ctx, l)
	}
	return b.server.Release(ctx, l)
}

func (b *bent) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if b.entry != nil {
		return b.entry(ctx, name)
	}
	return b.server.Inspect(ctx, name)
}

func (b *bent) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	if b.breaks != nil {
		return b.breaks(ctx, name, fence, delay, by)
	}
	return b.server.Break(ctx, name, fence, delay, by)
}

func (b *bent) Listen(f func(driver.Signal)) (stop func()) {
	if b.listen != nil {
		f = b.listen(f)
	}
	return b.server.Listen(f)
}

// inNode plants a bug in what a node does; what it remembers, it remembers for all its
// sessions.
func inNode(bend func(b *bent, m *memories)) func() planted {
	return func() planted {
		of := map[*node]*memories{}
		return planted{node: func(n *node, s server) server {
			if of[n] == nil {
				of[n] = &memories{clock: &n.clock, claims: map[driver.Token]driver.Claim{}, last: map[string]uint64{}, holder: map[string]driver.Token{}, swap: map[driver.Token]driver.Token{}}
			}
			b := &bent{server: s}
			bend(b, of[n])
			return b
		}}
	}
}

// inClient plants a bug in the driver that a process works with.
func inClient(bend func(p *process, b *bent)) func() planted {
	return func() planted {
		return planted{client: func(p *process, d driverOf) driverOf {
			b := &bent{server: lifted{d}}
			bend(p, b)
			return b
		}}
	}
}

// lifted makes a server of what the root package is given; nobody raises fences there.
type lifted struct{ driverOf }

func (lifted) RaiseFence(context.Context, driver.LeaseRef, uint64) (uint64, error) {
	panic("not a node")
}
