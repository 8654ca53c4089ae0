package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Harness tells the suite how to use one backend. Open is needed, and OpenThrough or
// NoNetwork.
type Harness struct {
	// Open opens one more client of the backend under test. Clients share nothing but the
	// backend, as if each were in a process of its own. It fails t itself if it cannot.
	// The suite closes what it opened. It does not see that a client takes its own clock
	// for the server's, unless the server's clock differs from that of the machine.
	Open func(t testing.TB) driver.Driver

	// Clock is the backend's clock, if it can be moved: a *memlock.Clock does. It stands
	// still by itself. nil means that the backend has a clock of its own: then the suite
	// waits, in real time.
	Clock Clock

	// Unit is a short time: most leases that have to expire last one or two of it, and
	// what happens within a quarter of it counts as at once. Default: 10 s with a Clock,
	// 500 ms without. It is raised to twice Properties().MinTTL.
	Unit time.Duration

	// Blur is how much longer than it was asked for a lease, a place or a lock-delay may
	// last, where the backend's time is only known to within that. A backend with a Clock
	// has none.
	Blur time.Duration

	// Patience is how long a signal may take before it counts as missing. A subtest has
	// some Patiences, beside the time that it lets pass, before it counts as stuck.
	// Default 5 s.
	Patience time.Duration

	// Wipe loses all that the backend stored, as a server does that is killed without
	// persistence. Clients opened before are not used after it. nil means that this
	// cannot be tested here. It must not disturb other subtests: without a Clock they run
	// at the same time, and Wipe has to empty a backend of its own, which the Opens of
	// the same t see.
	Wipe func(t testing.TB)

	// OpenThrough opens one more client, as Open does, whose connections go through n: it
	// dials with [Network.Dial], or finds its servers at their [Network.Addr]. So the
	// suite sees what a request does that arrives after its end, see [driver.End], what
	// the client does where the network becomes slower, and what it says where there is
	// none.
	OpenThrough func(t testing.TB, n *Network) driver.Driver

	// NoNetwork says that no request of this backend outlives its call, and that there is
	// no OpenThrough: all is in the memory of this process, or in a file. The suite looks
	// at that instead.
	NoNetwork bool

	// Sessions open clients whose sessions differ from those of Open, and from each
	// other, in all that a URL, a user or a role can set on this backend: encoding,
	// collation, time zone, how values are quoted and written, isolation. The suite wants
	// them to see the same names. nil means that a session has nothing to set.
	Sessions []func(t testing.TB) driver.Driver

	// Elsewhere opens a client of another place that the same server has: another schema,
	// prefix, bucket or database, each by one of these. What is held here is free there,
	// so Properties().Where has to tell them apart: a handle of a lease says by it where
	// the lease is.
	Elsewhere []func(t testing.TB) driver.Driver

	// TellsLater says that there is a Clock, and still those who watch a name are told of
	// a change soon after the step that makes it, not before that returns.
	TellsLater bool

	// AllAtOnce says that the driver is a [driver.AllAcquirer] that grants claims of any
	// names in one step, and the suite looks at that. Without it, names may be on
	// different servers.
	AllAtOnce bool

	// AgreesLate allows what a quorum does whose nodes have clocks of their own. When it
	// passes a name on, each node gives a fence of its own, and they agree on one when
	// the claimant is told. If others are granted beside it before that, their fences are
	// lower although they came later; what Entry showed of it until then was no more than
	// a guess; and where they leave no room within its limit, which must be smaller than
	// theirs, it is refused. Exclusive claims have nobody beside them, so nothing is
	// allowed for those but the guess.
	AgreesLate bool

	// WritesLate allows what every quorum does: a waiter to which the name is passed on
	// has its value written when it is told, and not before. And a claim may be granted
	// with a higher fence than one server would give it: at a node where the claim before
	// it comes later, the two have to agree on other fences.
	WritesLate bool

	thorough bool // all subtests are run, though many have failed
}

// Clock is a clock that stands still until it is told to move.
type Clock interface {
	Now() time.Time
	Advance(d time.Duration)
}

// long is for leases that shall not expire while a test looks at them.
const long = time.Hour

// Run runs the whole suite, as subtests of t, and returns when all of them have. It
// begins with the basics; where one of those fails, the suite ends with it.
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
	if h.Patience == 0 {
		h.Patience = 5 * time.Second
	}

	s := &suite{
		Harness: h, properties: properties, running: newRunning(),
		breaks: breaks, raises: raises, lists: lists, diagnoses: diagnoses,
		signals: signals && properties.Push, tells: watches && properties.PushesChanges,
	}
	defer s.stalls.watch()()
	s.runTopics(t)
}
