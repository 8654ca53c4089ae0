package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Harness tells the suite how to use a backend. Open is required, and OpenThrough or
// NoNetwork.
type Harness struct {
	// Open opens another client of the backend under test, or fails t. Clients share
	// nothing except the backend, as if each were in its own process. The suite closes
	// them. If a client takes its own clock for the server's, the suite notices that only
	// if the two clocks differ.
	Open func(t testing.TB) driver.Driver

	// Clock is the backend's clock, if only Advance moves it: for example a
	// *memlock.Clock. nil means that the backend has another clock: then the suite waits,
	// in real time.
	Clock Clock

	// Unit is a short time: most leases that have to expire last one or two units, and an
	// event within a quarter of a unit counts as immediate. Default: 10 s with a Clock,
	// 500 ms without. It is at least twice Properties().MinTTL.
	Unit time.Duration

	// Uncertainty is the time by which a lease, a place or a lock-delay may last longer
	// than requested, if the backend's time is known only to within that. It is 0 for a
	// backend with a Clock.
	Uncertainty time.Duration

	// ClockLag returns how much time the backend's clock has lost so far. A clock that is
	// moved by clients loses time while they do not run. A subtest that fails meanwhile
	// is run again, like one that ran late itself. nil means that the clock loses none.
	ClockLag func() time.Duration

	// Patience is the time that a signal may take on a machine that is not busy. It
	// counts as missing after four Patiences. A subtest counts as stuck after minutes, or
	// sixty short Patiences, in addition to the time that it lets pass. Default 5 s.
	Patience time.Duration

	// Wipe deletes all data of the backend, like a server that is killed without
	// persistence. Clients opened before are not used after it. nil means that this
	// cannot be tested. It must not disturb other subtests: without a Clock they run at
	// the same time, so Wipe has to empty a separate backend, which each Open with the
	// same t uses.
	Wipe func(t testing.TB)

	// OpenThrough opens another client, as Open does, whose connections go through n: it
	// dials with [Network.Dial], or finds its servers at their [Network.Addr]. So the
	// suite can test requests that arrive after their end, see [driver.End], a network
	// that becomes slower, and the errors without a network.
	OpenThrough func(t testing.TB, n *Network) driver.Driver

	// NoNetwork means that no request of this backend outlives its call, because the data
	// is in the memory of this process, or in a file. Then there is no OpenThrough, and
	// the suite tests that no request outlives its call.
	NoNetwork bool

	// Sessions open clients whose sessions differ, from each other and from the clients
	// of Open, in everything that a URL, a user or a role can set on this backend:
	// encoding, collation, time zone, quoting and format of values, isolation. They must
	// all see the same names. nil means that sessions have no such settings.
	Sessions []func(t testing.TB) driver.Driver

	// OtherStores each open a client of another store on the same server: another schema,
	// prefix, bucket or database. A name that is held here is free there, so
	// Properties().Location must differ: the handle of a lease contains it.
	OtherStores []func(t testing.TB) driver.Driver

	// ReportsLater means that, although there is a Clock, a watch's function is called
	// soon after the step that changes the name returns, and not before.
	ReportsLater bool

	// AtomicAll means that the driver is a [driver.AllAcquirer] that grants claims of any
	// names in one step. The suite tests that. Without it, names may be on different
	// servers.
	AtomicAll bool

	// NodeClocksDiffer allows the behavior of a quorum whose nodes have clocks of their
	// own. When it passes a name on, the nodes grant different fences, and agree on one
	// when the client learns of the grant. Until then, Inspect may show another fence. If
	// other claims are granted meanwhile, their fences are lower although they are later.
	// If they leave no room within the limit of the first claim, it is refused. An
	// exclusive claim has no others beside it, so for it only Inspect may differ.
	NodeClocksDiffer bool

	// IsQuorum allows the behavior of every quorum. The value of a waiter that is
	// granted the name is written only when its client learns of the grant. A claim may
	// get a higher fence than one server would grant: if the earlier claim reaches a node
	// later, the nodes have to agree on other fences. If a holder renews with a shorter
	// TTL than before, Inspect may show the longer one until all nodes know. And a waiter
	// may lose a permit that was passed on to it: if a holder with a larger limit
	// releases, and claims again, while the permits are counted, its new lease counts as
	// the old one.
	IsQuorum bool

	thorough bool // all subtests run, even after failures
}

// Clock is a clock that moves only when it is advanced.
type Clock interface {
	Now() time.Time
	Advance(d time.Duration)
}

// long is for leases that must not expire during a test.
const long = time.Hour

// Run runs the whole suite, as subtests of t, and returns when all have. It begins with
// the basics, and ends with the first of them that fails.
func Run(t *testing.T, h Harness) {
	switch {
	case h.OpenThrough == nil && !h.NoNetwork:
		t.Fatal("the harness has no OpenThrough, so late requests cannot be tested: it must open a client that dials with n.Dial, " +
			"or finds its server at n.Addr(address); if the backend has no network, set NoNetwork")
	case h.OpenThrough != nil && h.NoNetwork:
		t.Fatal("the harness has OpenThrough and NoNetwork; want only one of them")
	}
	d := h.Open(t)
	properties := d.Properties()
	_, breaks := d.(driver.LeaseBreaker)
	_, raises := d.(driver.FenceRaiser)
	_, lists := d.(driver.Lister)
	_, signals := d.(driver.Signaler)
	_, watches := d.(driver.Watcher)
	_, diagnoses := d.(driver.Diagnoser)
	if err := d.Close(); err != nil {
		t.Fatalf("Close of a client that did nothing: %v", err)
	}
	if h.Unit == 0 {
		h.Unit = 500 * time.Millisecond
		if h.Clock != nil {
			h.Unit = 10 * time.Second
		}
	}
	h.Unit = max(h.Unit, 2*properties.MinTTL)
	short := testing.Short() && h.Clock == nil
	if h.Patience == 0 {
		h.Patience = 5 * time.Second
	}

	s := &suite{
		Harness: h, properties: properties, running: newRunning(),
		canBreak: breaks, canRaise: raises, canList: lists, canDiagnose: diagnoses,
		canSignal: signals && properties.PushesGrants, canWatch: watches && properties.PushesChanges, short: short,
	}
	defer s.stalls.watch()()
	s.runTopics(t)
}
