package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Harness tells the suite how to use one backend. Open is required, and OpenThrough or
// NoNetwork.
type Harness struct {
	// Open opens one more client of the backend under test. Clients share nothing except
	// the backend, as if each were in a process of its own. It fails t itself if it
	// cannot. The suite closes what it opened. If a client takes its own clock for the
	// server's, the suite notices that only if the two clocks differ.
	Open func(t testing.TB) driver.Driver

	// Clock is the backend's clock, if it can be moved: for example a *memlock.Clock. It
	// stands still by itself. nil means that the backend has a clock of its own: then the
	// suite waits, in real time.
	Clock Clock

	// Unit is a short time: most leases that have to expire last one or two units, and an
	// event within a quarter of a unit counts as immediate. Default: 10 s with a Clock,
	// 500 ms without. It is at least twice Properties().MinTTL.
	Unit time.Duration

	// Uncertainty is the time by which a lease, a place or a lock-delay may last longer
	// than requested, if the backend's time is known only to within that. It is 0 for a
	// backend with a Clock.
	Uncertainty time.Duration

	// Patience is the time that a signal may take on a machine that is not busy. It
	// counts as missing after four Patiences. A subtest counts as stuck after minutes, or
	// sixty short Patiences, in addition to the time that it lets pass. Default 5 s.
	Patience time.Duration

	// Wipe loses all that the backend stored, like a server that is killed without
	// persistence. Clients opened before are not used after it. nil means that this
	// cannot be tested here. It must not disturb other subtests: without a Clock they run
	// at the same time, and Wipe has to empty a backend of its own, which the Opens of
	// the same t use.
	Wipe func(t testing.TB)

	// OpenThrough opens one more client, as Open does, whose connections go through n: it
	// dials with [Network.Dial], or finds its servers at their [Network.Addr]. So the
	// suite sees the effect of a request that arrives after its end, see [driver.End];
	// what the client does when the network becomes slower; and its errors without a
	// network.
	OpenThrough func(t testing.TB, n *Network) driver.Driver

	// NoNetwork says that no request of this backend outlives its call, and that there is
	// no OpenThrough: all is in the memory of this process, or in a file. Then the suite
	// tests that instead.
	NoNetwork bool

	// Sessions open clients whose sessions differ from those of Open, and from each
	// other, in all that a URL, a user or a role can set on this backend: encoding,
	// collation, time zone, how values are quoted and written, isolation. The suite wants
	// them to see the same names. nil means that a session has no such settings.
	Sessions []func(t testing.TB) driver.Driver

	// OtherStores each open a client of another store on the same server: another schema,
	// prefix, bucket or database. A name that is held here is free there, so
	// Properties().Location must differ: the handle of a lease contains it.
	OtherStores []func(t testing.TB) driver.Driver

	// ReportsLater says that, although there is a Clock, a watch's function is called
	// soon after the step that changes the name, and not before the step returns.
	ReportsLater bool

	// AtomicAll says that the driver is a [driver.AllAcquirer] that grants claims of any
	// names in one step. The suite tests that. Without it, names may be on different
	// servers.
	AtomicAll bool

	// AgreesLate allows the behavior of a quorum whose nodes have clocks of their own.
	// When it passes a name on, each node gives a fence of its own, and they agree on one
	// when the client learns of the grant. If other claims are granted beside it before
	// that, their fences are lower although they came later, and Inspect showed only a
	// guess until then. If they leave no room within its limit, which must be smaller
	// than theirs, it is refused. An exclusive claim has no others beside it, so only the
	// guess is allowed for it.
	AgreesLate bool

	// WritesLate allows the behavior of every quorum. A waiter to which the name is
	// passed on has its value written when its client learns of the grant, and not
	// before. A claim may be granted with a higher fence than one server would give it:
	// if the earlier claim reaches a node later, the two have to agree on other fences.
	// And if a holder renews with a shorter TTL than before, Inspect may show the longer
	// one until all nodes know. A waiter to which a permit is passed on may lose it: if a
	// holder with a larger limit releases, and claims again, while the permits are
	// counted, its new lease counts as the old one.
	WritesLate bool

	thorough bool // all subtests run, though many have failed
}

// Clock is a clock that moves only when it is advanced.
type Clock interface {
	Now() time.Time
	Advance(d time.Duration)
}

// long is for leases that must not expire during a test.
const long = time.Hour

// Run runs the whole suite, as subtests of t, and returns when all of them have. It
// begins with the basics; if one of those fails, the suite ends with it.
func Run(t *testing.T, h Harness) {
	switch {
	case h.OpenThrough == nil && !h.NoNetwork:
		t.Fatal("the harness has no OpenThrough, so late requests cannot be seen: have it open a client that dials with n.Dial, " +
			"or finds its server at n.Addr(address); or say with NoNetwork that the backend has no network")
	case h.OpenThrough != nil && h.NoNetwork:
		t.Fatal("the harness has an OpenThrough and says NoNetwork; want one of them")
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
