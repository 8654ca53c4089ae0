package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
)

// Options for a quorum. The zero value and nil work.
type Options struct {
	// Now is this client's clock. It has two uses: to propose a fence, so that the nodes
	// grant the same one, and for tickets, which put claims in the same order on all
	// nodes. Default: time.Now. Then each client's tickets are earlier by a random time
	// up to a millisecond, so that two clients seldom have the same ticket.
	Now func() time.Time

	// Grace is the time for which a decided operation waits for the nodes that have not
	// answered yet, so that these nodes do not fall behind the others. It does not wait
	// for nodes that are late with earlier requests. Default: 0.4 of the time until the
	// decision, and at least 1 ms.
	Grace time.Duration
}

// quorum is a client of several backends.
type quorum struct {
	nodes      []*node
	allNodes   []int // the indexes of nodes
	majority   int
	now        func() time.Time
	ticketLead time.Duration // the time by which a ticket is earlier than its claim
	grace      time.Duration
	fenceLead  atomic.Int64 // the lead of proposed fences over this client's clock, in microseconds

	requestsCtx    context.Context // of all requests; Close cancels it
	cancelRequests context.CancelFunc
	work           sync.WaitGroup // operations, and requests that outlast them

	mu          sync.Mutex // protects closed
	closed      bool
	sequences   sequences
	places      places
	holdings    holdings
	pending     *pendingReleases
	listeners   driver.Listeners
	stopSignals []func() // end the subscriptions to the nodes' signals

	watchers driver.Watchers
}

// A node is one of the independent backends.
type node struct {
	driver.Driver
	driver.FenceRaiser // nil only if the quorum has one node, which cannot raise fences
	number             int
	lateRequests       atomic.Int64 // requests that are still under way, and for which no caller waits
}

// initialLead is the lead of proposed fences before the nodes' clocks were measured. If
// the nodes' clocks differ from this client's by less than initialLead minus the time of
// a request, the proposal is higher than each node's own number, and low enough to be
// granted. So even the first grant, often the only one of a process, needs only one round
// trip.
const initialLead = driver.MaxLead / 2

// New makes one driver of several drivers. Each must have a backend of its own, which
// shares nothing with the other backends: no machine, no disk, no replication. A majority
// of the drivers, len(drivers)/2+1, decides. An even number is allowed, but no better
// than the odd number below it: 4 nodes survive the loss of 1, as 3 do.
//
// The quorum owns the drivers: Close closes them, and no other code may use them.
//
// If there is more than one driver, each has to be a [driver.FenceRaiser]. Otherwise the
// nodes could not agree on a fence.
func New(drivers []driver.Driver, o *Options) (driver.Driver, error) {
	if len(drivers) == 0 {
		return nil, &driver.InvalidError{Argument: "quorum", Problem: "has no nodes", Allowed: "1 or more, 3 or 5 in most cases"}
	}
	d := &quorum{majority: len(drivers)/2 + 1, now: time.Now, ticketLead: ticketHeadStart + backoff.Random(time.Millisecond)}
	for i, x := range drivers {
		n := &node{Driver: x, number: i + 1}
		problem, canRaise := "", false
		switch {
		case engine.IsNil(x):
			problem = "is nil"
		case slices.Contains(drivers[:i], x):
			problem = "is given twice, and would vote twice"
		default:
			if n.FenceRaiser, canRaise = driver.As[driver.FenceRaiser](x); !canRaise && len(drivers) > 1 {
				problem = "(" + x.Properties().Backend + ") cannot raise its fences"
			}
		}
		if problem != "" {
			return nil, &driver.InvalidError{
				Argument: "quorum", Problem: fmt.Sprintf("node %d %s", i+1, problem), Allowed: "distinct drivers that are driver.FenceRaisers",
			}
		}
		d.nodes, d.allNodes = append(d.nodes, n), append(d.allNodes, i)
	}
	if o != nil {
		d.grace = o.Grace
		if o.Now != nil {
			d.now, d.ticketLead = o.Now, ticketHeadStart
		}
	}
	d.fenceLead.Store(initialLead.Microseconds())
	d.requestsCtx, d.cancelRequests = context.WithCancel(context.Background())
	d.sequences.tails, d.places.all, d.holdings.all = map[nodeToken]chan struct{}{}, map[driver.Token]*place{}, map[driver.Token]*holding{}
	d.pending = newPendingReleases(d)
	for i, n := range d.nodes {
		if s, ok := driver.As[driver.Signaler](n.Driver); ok {
			d.stopSignals = append(d.stopSignals, s.Listen(func(sig driver.Signal) { d.signaled(i, sig) }))
		}
	}
	d.watchers.OnFirstWatch(d.watchNodes)
	return d, nil
}

// minQuorumTTL is the shortest TTL that leaves time for the round trips of a grant: one
// for the votes, and others for the fence, the permits and the value (conclude.go).
const minQuorumTTL = 200 * time.Millisecond

// Properties implements driver.Driver.
func (d *quorum) Properties() driver.Properties {
	var kinds []string
	count := map[string]int{}
	out := driver.Properties{PushesGrants: true, PushesChanges: true}
	for _, n := range d.nodes {
		p := n.Properties()
		if count[p.Backend]++; count[p.Backend] == 1 {
			kinds = append(kinds, p.Backend)
		}
		if out.Clock == "" {
			out.Clock = p.Clock
		} else if out.Clock != p.Clock {
			out.Clock = driver.ClockServer // several clocks decide
		}
		out.MinTTL, out.MaxOverrun = max(out.MinTTL, p.MinTTL), max(out.MaxOverrun, p.MaxOverrun)
		out.PushesGrants, out.PushesChanges = out.PushesGrants && p.PushesGrants, out.PushesChanges && p.PushesChanges
	}
	for i, k := range kinds {
		if n := count[k]; n > 1 {
			kinds[i] = fmt.Sprintf("%d×%s", n, k)
		}
	}
	if len(d.nodes) > 1 {
		out.MinTTL = max(out.MinTTL, minQuorumTTL)
	}
	out.Backend = "quorum(" + strings.Join(kinds, ", ") + ")"
	out.FenceSurvives = driver.FencesRiseByMajority
	return out
}

// closeGrace is the time for which Close waits for requests that are still under way.
// Otherwise Close could cancel a release that is under way to a slow node, and the node
// would keep the lease until it expires.
const closeGrace = time.Second

// Close implements driver.Driver. It waits up to closeGrace for requests under way,
// cancels the rest, and closes the nodes.
func (d *quorum) Close() error {
	d.mu.Lock()
	wasClosed := d.closed
	d.closed = true
	d.mu.Unlock()
	if wasClosed {
		return nil
	}
	d.watchers.Close()
	for _, stop := range d.stopSignals {
		stop()
	}
	timer := time.AfterFunc(closeGrace, d.cancelRequests)
	d.work.Wait()
	timer.Stop()
	d.cancelRequests()
	d.places.stop()
	d.pending.stop()
	d.work.Wait()
	var errs []error
	for _, n := range d.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// beginOperation begins an operation. It returns an error if an argument is invalid, the
// driver is closed or ctx has ended. Close waits until the operation calls d.work.Done.
func (d *quorum) beginOperation(ctx context.Context, invalid ...error) error {
	if err := errors.Join(invalid...); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.work.Add(1)
	return nil
}

func (d *quorum) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// abilities returns an ability of each node, or an error if a node lacks it.
func abilities[T any](d *quorum, verb string) ([]T, error) {
	all := make([]T, len(d.nodes))
	for i, n := range d.nodes {
		var ok bool
		if all[i], ok = driver.As[T](n.Driver); !ok {
			return nil, fmt.Errorf("quorumlock: node %d cannot %s: %w", n.number, verb, errors.ErrUnsupported)
		}
	}
	return all, nil
}
