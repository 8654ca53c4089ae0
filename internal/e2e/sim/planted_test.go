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

// A bug is a possible mistake in Pawl, or a mistake that it had. The test proves that the
// checker finds it.
type bug struct {
	name    string
	message string // a part of the checker's message about the bug
	// seed is the first seed that finds the bug. If it no longer does, the test searches
	// all seeds.
	seed    uint64
	backend string
	make    func() planted // called for each schedule, because a bug may have state
	tune    func(*plan)    // makes the needed situation more frequent; may be nil
}

// maxSchedules limits the search. A slow machine finds as much as a fast one.
const maxSchedules = 10_000

// find searches for a schedule that shows the bug.
func (b *bug) find(t *testing.T) (seed uint64, text string) {
	t.Helper()
	var found *history
	findsBug := func(seed uint64) bool {
		p := planOver(b.backend, seed)
		if b.tune != nil {
			b.tune(p)
		}
		h := simulate(t, p, b.make())
		for _, v := range h.violations {
			if strings.Contains(v.text, b.message) {
				text, found = v.text, h
			}
		}
		return found != nil
	}
	if os.Getenv("PAWL_SIM_SEARCH") == "" && b.seed > 0 && findsBug(b.seed) {
		return b.seed, text
	}
	for seed = 1; seed <= maxSchedules; seed++ {
		if findsBug(seed) {
			return seed, text
		}
	}
	return 0, ""
}

func TestPlantedBugsAreFound(t *testing.T) {
	basictest.SkipIfShort(t, "many schedules")
	for _, b := range slices.Concat(reviewBugs, faults, quorumBugs, storeBugs, featureBugs) {
		t.Run(b.name, func(t *testing.T) {
			began := time.Now()
			seed, text := b.find(t)
			if text == "" {
				t.Fatalf("not found in %d schedules", maxSchedules)
			}
			t.Logf("seed %d, %v: %s", seed, time.Since(began).Round(time.Millisecond), text)
		})
	}
}

// The tables of docs/internals/reliability.md have the bugs and their seeds.
func TestPlantedBugsAreDocumented(t *testing.T) {
	for _, table := range []struct {
		head string
		bugs []bug
	}{
		{"| found in Pawl, put back | over | seed |", reviewBugs},
		{"| a common one | over | seed |", faults},
		{"| of quorums | seed |", quorumBugs},
		{"| of engines that compare and swap | seed |", storeBugs},
		{"| of what stands on the locks, over one node | seed |", featureBugs},
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

// patched is a driver that replaces some methods.
type patched struct {
	server
	acquire func(ctx context.Context, c driver.Claim) (driver.Grant, error)
	renew   func(ctx context.Context, leases []driver.LeaseRef) ([]error, error)
	release func(ctx context.Context, l driver.LeaseRef) error
	entry   func(ctx context.Context, name string) (driver.Entry, error)
	listen  func(f func(driver.Signal)) func(driver.Signal)
	breaks  func(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error
}

// patch returns an unchanged server, of which a bug can replace methods.
func patch(s server) *patched {
	same := func(f func(driver.Signal)) func(driver.Signal) { return f }
	return &patched{s, s.Acquire, s.Renew, s.Release, s.Inspect, same, s.Break}
}

func (b *patched) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.acquire(ctx, c)
}

func (b *patched) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return b.renew(ctx, leases)
}

func (b *patched) Release(ctx context.Context, l driver.LeaseRef) error { return b.release(ctx, l) }

func (b *patched) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return b.entry(ctx, name)
}

func (b *patched) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return b.breaks(ctx, name, fence, delay, by)
}

func (b *patched) Listen(f func(driver.Signal)) (stop func()) { return b.server.Listen(b.listen(f)) }

// claims makes the server get changed claims.
func (b *patched) claims(change func(c *driver.Claim)) {
	b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		change(&c)
		return b.server.Acquire(ctx, c)
	}
}

// grants makes the server return changed grants.
func (b *patched) grants(m *bugState, change func(c driver.Claim, g *driver.Grant)) {
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

// renewals makes the server get changed renewals.
func (b *patched) renewals(change func(l *driver.LeaseRef)) {
	b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
		leases = slices.Clone(leases)
		for i := range leases {
			change(&leases[i])
		}
		return b.server.Renew(ctx, leases)
	}
}

// releases makes the server get changed releases.
func (b *patched) releases(change func(l *driver.LeaseRef)) {
	b.release = func(ctx context.Context, l driver.LeaseRef) error {
		change(&l)
		return b.server.Release(ctx, l)
	}
}

// entries makes the server return changed entries.
func (b *patched) entries(change func(e *driver.Entry)) {
	b.entry = func(ctx context.Context, name string) (driver.Entry, error) {
		e, err := b.server.Inspect(ctx, name)
		change(&e)
		return e, err
	}
}

// claims and signals plant bugs in the claims and signals of a node. entries plants a bug
// in the entries that a process reads.

func claims(change func(c *driver.Claim)) func() planted {
	return inNode(func(b *patched, _ *bugState) { b.claims(change) })
}

func signals(arrive func(driver.SignalKind) bool) func() planted {
	return inNode(func(b *patched, _ *bugState) {
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
	return inClient(func(p *process, b *patched) { b.entries(func(e *driver.Entry) { change(p, e) }) })
}

// inNode plants a bug in a node. All sessions of the node share one bugState.
func inNode(plant func(b *patched, m *bugState)) func() planted {
	return func() planted {
		states := map[*node]*bugState{}
		return planted{node: func(n *node, s server) server {
			if states[n] == nil {
				states[n] = &bugState{clock: &n.clock, claims: map[driver.Token]driver.Claim{}, last: map[string]uint64{}, holder: map[string]driver.Token{}, swap: map[driver.Token]driver.Token{}}
			}
			b := patch(s)
			plant(b, states[n])
			return b
		}}
	}
}

// inClient plants a bug in the driver of a process.
func inClient(plant func(p *process, b *patched)) func() planted {
	return func() planted {
		return planted{client: func(p *process, d rootDriver) rootDriver {
			b := patch(asServer{d})
			plant(p, b)
			return b
		}}
	}
}

// asServer makes a server of a process' driver. The root package raises no fences.
type asServer struct{ rootDriver }

func (asServer) RaiseFence(context.Context, driver.LeaseRef, uint64) (uint64, error) {
	panic("not a node")
}
