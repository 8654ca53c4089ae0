package sim

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/doctable"
)

// A bug is a possible mistake in Pawl, or a real one of the past. A checker that cannot
// find it proves nothing.
type bug struct {
	name string
	sees string // a part of the checker's message that proves the find
	// seed is the first seed that finds it, so that the test is quick. If it no longer
	// finds the bug, the test searches all seeds.
	seed    uint64
	backend string
	make    func() planted // called for each schedule: its memory is of one world
	tune    func(*plan)    // makes the needed situation more frequent; may be nil
}

// most is the number of schedules that the search tries. It is not a time, so a slow
// machine finds as much.
const most = 10_000

// find searches for a schedule that shows the bug.
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
	basictest.Nightly(t, "many schedules")
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

// The tables of docs/internals/reliability.md have the bugs and their seeds.
func TestPlantedBugsAreDocumented(t *testing.T) {
	for _, table := range []struct {
		head string
		bugs []bug
	}{
		{"| found in Pawl, put back | over | seed |", reviewed},
		{"| a common one | over | seed |", faults},
		{"| of quorums | seed |", ofQuorums},
		{"| of engines that compare and swap | seed |", ofStores},
		{"| of what stands on the locks, over one node | seed |", ofFeatures},
	} {
		var rows []string
		for _, b := range table.bugs {
			over := ""
			if strings.Contains(table.head, "| over |") {
				over = b.backend + " | "
			}
			rows = append(rows, fmt.Sprintf("| %s | %s%d |", b.name, over, b.seed))
		}
		doctable.Want(t, "../../../docs/internals/reliability.md", table.head, rows)
	}
}

// bent is a driver that replaces some methods.
type bent struct {
	server
	acquire func(ctx context.Context, c driver.Claim) (driver.Grant, error)
	renew   func(ctx context.Context, leases []driver.LeaseRef) ([]error, error)
	release func(ctx context.Context, l driver.LeaseRef) error
	entry   func(ctx context.Context, name string) (driver.Entry, error)
	listen  func(f func(driver.Signal)) func(driver.Signal)
	breaks  func(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error
}

// bend returns a server as it is, for a bug to replace a method.
func bend(s server) *bent {
	same := func(f func(driver.Signal)) func(driver.Signal) { return f }
	return &bent{s, s.Acquire, s.Renew, s.Release, s.Inspect, same, s.Break}
}

func (b *bent) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.acquire(ctx, c)
}

func (b *bent) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return b.renew(ctx, leases)
}

func (b *bent) Release(ctx context.Context, l driver.LeaseRef) error { return b.release(ctx, l) }

func (b *bent) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return b.entry(ctx, name)
}

func (b *bent) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return b.breaks(ctx, name, fence, delay, by)
}

func (b *bent) Listen(f func(driver.Signal)) (stop func()) { return b.server.Listen(b.listen(f)) }

// claims makes the server get other claims.
func (b *bent) claims(change func(c *driver.Claim)) {
	b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		change(&c)
		return b.server.Acquire(ctx, c)
	}
}

// grants makes the server grant something else.
func (b *bent) grants(m *memories, change func(c driver.Claim, g *driver.Grant)) {
	b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := b.server.Acquire(ctx, c)
		m.mu.Lock()
		defer m.mu.Unlock()
		if err == nil {
			change(c, &g)
		}
		return g, err
	}
}

// entries makes the server show other entries.
func (b *bent) entries(change func(e *driver.Entry)) {
	b.entry = func(ctx context.Context, name string) (driver.Entry, error) {
		e, err := b.server.Inspect(ctx, name)
		change(&e)
		return e, err
	}
}

// claims, signals and entries plant bugs that are no more than that: in the claims and
// the signals of a node, and in the entries that a process reads.

func claims(change func(c *driver.Claim)) func() planted {
	return inNode(func(b *bent, _ *memories) { b.claims(change) })
}

func signals(arrive func(driver.SignalKind) bool) func() planted {
	return inNode(func(b *bent, _ *memories) {
		b.listen = func(f func(driver.Signal)) func(driver.Signal) {
			return func(s driver.Signal) {
				if arrive(s.Kind) {
					f(s)
				}
			}
		}
	})
}

func entries(change func(p *process, e *driver.Entry)) func() planted {
	return inClient(func(p *process, b *bent) { b.entries(func(e *driver.Entry) { change(p, e) }) })
}

// inNode plants a bug in a node. The bug has one memory for all sessions of the node.
func inNode(plant func(b *bent, m *memories)) func() planted {
	return func() planted {
		of := map[*node]*memories{}
		return planted{node: func(n *node, s server) server {
			if of[n] == nil {
				of[n] = &memories{clock: &n.clock, claims: map[driver.Token]driver.Claim{}, last: map[string]uint64{}, holder: map[string]driver.Token{}, swap: map[driver.Token]driver.Token{}}
			}
			b := bend(s)
			plant(b, of[n])
			return b
		}}
	}
}

// inClient plants a bug in the driver of a process.
func inClient(plant func(p *process, b *bent)) func() planted {
	return func() planted {
		return planted{client: func(p *process, d driverOf) driverOf {
			b := bend(lifted{d})
			plant(p, b)
			return b
		}}
	}
}

// lifted makes a server of the driver of the root package; the root package raises no
// fences.
type lifted struct{ driverOf }

func (lifted) RaiseFence(context.Context, driver.LeaseRef, uint64) (uint64, error) {
	panic("not a node")
}
