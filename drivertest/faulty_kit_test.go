package drivertest_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/memlock"
)

// server is a backend with a fault: memlock's entries, with signals that the server sends
// itself.
type server struct {
	fault *fault
	clock *memlock.Clock

	mu        sync.Mutex // protects the fields below
	memory    *memlock.Memory
	clients   map[string]*locktable.Driver // by inbox
	wipedAt   time.Time                    // when the data was lost last
	lastInbox int
}

// A fault is a defect of a driver. Without functions it has no effect.
type fault struct {
	name     string
	mustFail []string // the subtests that must fail

	driver func(d *faulty) driver.Driver                                       // wraps a client
	step   func(s *server, e *locktable.Entry, now locktable.Instant, f apply) // wraps each atomic step
	signal func(s *server, sig locktable.Signal) []locktable.Signal            // returns what is sent instead of sig

	session func(d *faulty) driver.Driver // wraps a client with other session settings

	networkDriver func(r *remote) driver.Driver // wraps a client on the suite's network
	network       network                       // between such a client and the server
	noNetwork     bool                          // the harness sets NoNetwork
	realClock     bool                          // its clock is the machine's
}

// apply is the algorithm's part of an atomic step.
type apply func(now locktable.Instant)

// beforeStep returns a fault's step that changes the entry before each step.
func beforeStep(change func(e *locktable.Entry, now locktable.Instant)) func(*server, *locktable.Entry, locktable.Instant, apply) {
	return func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		change(e, now)
		f(now)
	}
}

// afterStep returns a fault's step that changes the entry after each step.
func afterStep(change func(e *locktable.Entry, was locktable.Value)) func(*server, *locktable.Entry, locktable.Instant, apply) {
	return func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		was := e.Value
		f(now)
		change(e, was)
	}
}

func newServer(f *fault) *server {
	s := &server{fault: f, clock: memlock.NewClock(time.Now()), clients: map[string]*locktable.Driver{}}
	s.wipe()
	return s
}

func (s *server) harness() drivertest.Harness {
	h := drivertest.Harness{
		Open:  func(testing.TB) driver.Driver { return s.open() },
		Clock: s.clock,
		Wipe:  func(testing.TB) { s.wipe() },

		Sessions: []func(testing.TB) driver.Driver{s.session, s.session},

		AtomicAll: true,
	}
	if s.fault.realClock {
		h.Clock, h.Wipe = nil, nil
	}
	if h.NoNetwork = s.fault.noNetwork; !s.fault.noNetwork {
		h.OpenThrough = func(_ testing.TB, n *drivertest.Network) driver.Driver {
			r := &remote{faulty: s.newClient(), network: s.fault.network, net: n}
			if s.fault.networkDriver != nil {
				return s.fault.networkDriver(r)
			}
			return r
		}
	}
	return h
}

func (s *server) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = memlock.NewMemory(&memlock.Options{Now: s.now})
	s.wipedAt = s.now()
}

func (s *server) now() time.Time {
	if s.fault.realClock {
		return time.Now()
	}
	return s.clock.Now()
}

func (s *server) open() driver.Driver {
	d := s.newClient()
	if s.fault.driver != nil {
		return s.fault.driver(d)
	}
	return d
}

// session returns a client with other session settings.
func (s *server) session(testing.TB) driver.Driver {
	if s.fault.session != nil {
		return s.fault.session(s.newClient())
	}
	return s.open()
}

// newClient returns a client without a fault around it.
func (s *server) newClient() *faulty {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastInbox++
	t := &table{memory: access.Table(s.memory).(memory), server: s, inbox: strconv.Itoa(s.lastInbox)}
	d := &faulty{GroupedDriver: locktable.NewGrouped(t, t.inbox), table: t}
	s.clients[t.inbox] = d.Driver
	return d
}

// removeInbox stops delivery to an inbox.
func (s *server) removeInbox(inbox string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, inbox)
}

// connected returns the number of clients that are open.
func (s *server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// toAllClients addresses a signal to each client.
func (s *server) toAllClients(sig driver.Signal) (all []locktable.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for inbox := range s.clients {
		all = append(all, locktable.Signal{Inbox: inbox, Signal: sig})
	}
	return all
}

func (s *server) deliver(signals []locktable.Signal) {
	for _, sig := range signals {
		s.mu.Lock()
		d := s.clients[sig.Inbox]
		s.mu.Unlock()
		if d != nil {
			d.Deliver(sig.Signal)
		}
	}
}

// memory is the table of a *memlock.Memory.
type memory interface {
	locktable.Table
	locktable.Grouped
	locktable.Watchable
}

// table is the table of one client's driver.
type table struct {
	memory
	server *server
	inbox  string
}

// Update runs each step through the fault. It takes the signals out of the entry, because
// memlock does not know this memory's clients.
func (t *table) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	var signals []locktable.Signal
	err := t.memory.Update(ctx, steps, func(i int, e *locktable.Entry, now locktable.Instant) {
		signals = append(signals, t.runStep(e, now, func(now locktable.Instant) { f(i, e, now) })...)
	})
	t.server.deliver(signals)
	return err
}

// UpdateAll is Update for several names at once.
func (t *table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	var signals []locktable.Signal
	err := t.memory.UpdateAll(ctx, steps, func(i int, e *locktable.Entry, now locktable.Instant) (ok bool) {
		sent := t.runStep(e, now, func(now locktable.Instant) { ok = f(i, e, now) })
		signals = append(signals, sent...)
		return ok
	})
	t.server.deliver(signals)
	return err
}

func (t *table) runStep(e *locktable.Entry, now locktable.Instant, step apply) (signals []locktable.Signal) {
	s := t.server
	if s.fault.step != nil {
		s.fault.step(s, e, now, step)
	} else {
		step(now)
	}
	for _, sig := range e.Signals {
		if s.fault.signal != nil {
			signals = append(signals, s.fault.signal(s, sig)...)
		} else {
			signals = append(signals, sig)
		}
	}
	e.Signals = nil
	return signals
}

func (t *table) Close() error {
	t.server.removeInbox(t.inbox)
	return nil
}

// faulty is a client. Faults embed it and change one thing.
type faulty struct {
	*locktable.GroupedDriver
	table *table
}

// edit changes an entry behind the algorithm's back.
func (d *faulty) edit(name string, f func(e *locktable.Entry, now locktable.Instant)) {
	_ = d.table.memory.Update(context.Background(), []locktable.Step{{Name: name}}, func(_ int, e *locktable.Entry, now locktable.Instant) {
		f(e, now)
	})
}

// stored returns the entry as the table has it.
func (d *faulty) stored(name string) *locktable.Entry {
	e, _, _ := d.table.Read(context.Background(), name)
	return e
}

// held finds the lease of a token.
func (d *faulty) held(name string, t driver.Token) *locktable.Holder {
	for _, h := range d.stored(name).Holders {
		if h.Token == t {
			return &h
		}
	}
	return nil
}

// withoutQueue hides the waiters while do runs, and then puts them back in front.
func (d *faulty) withoutQueue(name string, do func()) {
	var hidden []locktable.Waiter
	d.edit(name, func(e *locktable.Entry, _ locktable.Instant) { hidden, e.Queue = e.Queue, nil })
	do()
	d.edit(name, func(e *locktable.Entry, _ locktable.Instant) { e.Queue = append(hidden, e.Queue...) })
}

// Wrappers that replace one method.
type (
	acquirer struct {
		*faulty
		acquire func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error)
	}
	renewer struct {
		*faulty
		renew func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error)
	}
	releaser struct {
		*faulty
		release func(ctx context.Context, d *faulty, l driver.LeaseRef) error
	}
	breaker struct {
		*faulty
		breakIt func(ctx context.Context, d *faulty, name string, fence uint64, delay time.Duration, by driver.Owner) error
	}
)

func (a acquirer) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return a.acquire(ctx, a.faulty, c)
}

func (r renewer) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return r.renew(ctx, r.faulty, leases)
}

func (r releaser) Release(ctx context.Context, l driver.LeaseRef) error {
	return r.release(ctx, r.faulty, l)
}

func (b breaker) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return b.breakIt(ctx, b.faulty, name, fence, delay, by)
}
