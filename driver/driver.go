// Package driver is the narrow waist of Pawl: what a backend must do, and nothing more.
//
// A backend stores one [Entry] per name and changes it in atomic steps. It never waits,
// never renews by itself, and starts no goroutine that Close does not end. The root
// package waits, renews, and tells holders that they lost, once for all backends.
//
// Users do not need this package. To write a backend:
//
//  1. Implement [Driver]. A backend with transactions gets the algorithm from
//     [github.com/pawl-go/pawl/locktable], one with compare-and-swap only from
//     [github.com/pawl-go/pawl/locktable/optimistic].
//  2. Implement what else it can do: [Signaler], [Watcher], [Lister], [LeaseBreaker],
//     [Diagnoser], [FenceRaiser], [AllAcquirer]. A driver around another one keeps what
//     that can do with a method Unwrap, see [As].
//  3. Run [github.com/pawl-go/pawl/drivertest] on it.
//  4. Call [Register] with its URL scheme.
//
// This package stays v0 when the root package becomes v1, and so do drivertest and
// locktable: a minor version may change them. If v1 held for them, too, it would freeze
// what a backend has to do and the form in which it stores an entry. The root package
// promises for users, whatever changes below it.
package driver

import (
	"context"
	"iter"
	"time"
)

// Driver is one client of one backend. Many goroutines may call its methods at once.
//
// The rules that every method keeps:
//
//   - The backend's clock decides what has expired, never the caller's. A lease is over
//     at the instant of its expiry.
//   - A step changes one name, atomically. It first removes what has expired, then grants
//     to the head of the queue while it fits.
//   - fence = max(last fence of this name + 1, the backend's time in microseconds since
//     1970), in the same step as the grant. So fences rise even when the backend forgot
//     the name.
//   - Names are compared byte for byte.
//   - ctx bounds the call: it returns as soon as ctx is over, whether or not the backend
//     has answered. The driver sees to what is then still under way.
//   - Every Acquire has an end, see [End]: it takes effect before that, by the backend's
//     clock, or never. So a request that arrives too late, because its caller gave up or
//     another request overtook it, changes nothing.
//   - After an error that is not named here, the outcome is unknown. The caller asks
//     again with the same token. Or it releases the token, and, if any Acquire with it
//     was not answered, releases it once more when the latest of their ends has passed.
//     One release is not enough, for the Acquire that it takes back may be behind it.
//   - Input that [Claim.Validate] refuses is answered with its error before anything is
//     sent. After Close every method returns [ErrClosed]. A failure of the backend is an
//     [*Error].
type Driver interface {
	// Acquire makes one attempt and never waits.
	//
	// It is idempotent per token: repeated after a lost reply, it returns the grant that
	// was made, and makes it last a full TTL from now. If the claim cannot be granted,
	// the error is a [*HeldError]. If c.Queue is set, the claim then has a place in the
	// queue, and each repeat keeps that place for another QueueTTL. A place that was not
	// kept is lost, and a repeat joins at the end.
	//
	// A step that passes a name on (a Release, or any step that finds an expired holder)
	// grants it to the head of the queue on the spot. Such a grant lasts as long as the
	// place would have; the next Acquire or Renew makes it a TTL.
	//
	// A claim that arrives after its end is not granted, does not queue, and breaks
	// nobody.
	//
	// With c.Value the name keeps that value from the grant on, also where it is granted
	// later, from the queue. A repeat by a token that holds writes nothing. With c.Above
	// the claim may be refused with a [*ValueError]; then it breaks nobody and has no
	// place in the queue, also if it had one. A waiter whose turn has come, and whose
	// Above is not above the value, loses its place in the same step, is told to look by
	// a signal, and the one behind it gets the turn.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew makes leases last their TTL from now. It compares the token, then extends: it
	// never creates a lease and never shortens one. It answers per lease, in order: nil,
	// ErrNotHeld (a [*BrokenError] if the backend knows who took it), or an error of that
	// lease alone. The second result is an error of the whole batch: then nothing is
	// known of any of them. Leases with a Value have an end, as an Acquire has.
	Renew(ctx context.Context, leases []LeaseRef) ([]error, error)

	// Release ends a lease, or leaves the queue, and passes the name on. It returns
	// ErrNotHeld if the token neither holds nor waits: it never held, was released
	// before, expired, or was broken. With l.MinHold, the name stays held until that long
	// after the grant, though no longer by this token. With l.OnTime, or a Value, the
	// release has an end, as an Acquire has.
	Release(ctx context.Context, l LeaseRef) error

	// Inspect reads one name, for people. It does not show what has expired. A name that
	// was never locked, or was forgotten, is an empty Entry, not an error.
	Inspect(ctx context.Context, name string) (Entry, error)

	// Properties returns what is true of this backend, as far as it is known by now. It
	// never blocks.
	Properties() Properties

	// Close frees what the driver itself opened, and nothing that it was given. It does
	// not release leases. A second Close does nothing.
	Close() error
}

// Signaler is a driver whose backend can push.
type Signaler interface {
	// Listen calls f for each signal about a token that was claimed through this driver,
	// until stop is called. f does not block. Several goroutines may call it, also from
	// inside a method of the driver. A signal may be late, repeated or missing: nothing
	// may depend on it but speed.
	Listen(f func(Signal)) (stop func())
}

// Watcher is a driver that can tell of changes to a name, whoever makes them. [Watchers]
// is what it has to remember.
type Watcher interface {
	// Watch calls f soon after each change of the name's Entry, until stop or Close is
	// called. Renewals are none, nor are places in the queue that are kept; an expiry is
	// told when a step finds it. f does not block.
	//
	// A call may be late, repeated or missing: nothing may depend on it but speed.
	// Neither Watch nor stop waits for the backend. A driver that begins to hear of a
	// name later than Watch returns, or again after it could not, calls f then: something
	// may have changed before.
	Watch(name string, f func()) (stop func())
}

// Lister is a driver that can list its names.
type Lister interface {
	// List yields the entries whose name starts with prefix and that are held, waited
	// for, or closed, in byte order of their names. It is no snapshot: each entry is true
	// at its own instant. An error that concerns one name, whose row is damaged, comes in
	// its place, with an Entry that has only the Name, and the list goes on. Any other
	// one comes with an empty Entry, and is the last thing yielded.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
}

// LeaseBreaker is a driver that can take a lease from its holder.
type LeaseBreaker interface {
	// Break ends the lease that has this fence, or whose range of fences contains it. It
	// keeps the name closed for delay, so that the holder, who is told by whom and for
	// how long, can stop before the next one starts. It returns ErrNotHeld if no holder
	// has this fence: then it has changed nothing.
	Break(ctx context.Context, name string, fence uint64, delay time.Duration, by Owner) error
}

// Diagnoser is a driver that can judge how its server is set up.
type Diagnoser interface {
	// Diagnose returns what a careful operator would change, most serious first. Empty
	// means healthy.
	Diagnose(ctx context.Context) ([]Finding, error)
}

// FenceRaiser is a driver whose fences can be raised. It is for quorums: nodes that
// granted one claim with different fences are brought to one that a majority agrees on,
// before anybody is shown it.
type FenceRaiser interface {
	// RaiseFence makes the fence of the token's lease at least fence, and returns the
	// fence that it has then. A range keeps its length.
	//
	// Never in the life of a name is one number the fence of two leases. If others were
	// granted after this lease, and so hold beside it, the result is greater than all of
	// theirs, which may be greater than asked for; and the next grant gets a greater one
	// still. If the lease could not have been granted after them, for they leave no room
	// within its limit, the error is a [*HeldError].
	//
	// With l.Value the name keeps that value, unless this lease has written one before.
	// So a quorum writes a claim's value when a majority has granted it.
	//
	// RaiseFence neither extends the lease nor creates one: it returns ErrNotHeld, as
	// Renew does, if the token holds nothing. After an error nothing is changed.
	RaiseFence(ctx context.Context, l LeaseRef, fence uint64) (uint64, error)
}

// AllAcquirer is a driver that can grant claims of several names in one atomic step.
type AllAcquirer interface {
	// AcquireAll makes one attempt at all of the claims: it grants each, or none. They
	// are as [ValidateAll] wants them. If one cannot be granted, the error is that of
	// Acquire for it, and names it: of the first in the order of claims. What has expired
	// there is passed on in any case, as by every step, and the error says to whom.
	//
	// The rules of Acquire hold for each: its end, which all have in common; the same
	// token again; an unknown outcome, after which each token is released. A token that
	// holds its name already keeps it, whatever becomes of the others.
	//
	// An error that is [errors.ErrUnsupported] says that these claims cannot be granted
	// in one step, for example because their names are on different servers. Then nothing
	// was sent, and they are for Acquire.
	AcquireAll(ctx context.Context, claims []Claim) ([]Grant, error)
}

// Claim is one attempt to hold a name.
type Claim struct {
	Name  string // what is locked, see ValidateName
	Token Token  // new for each claim. It is secret: it can release the lease
	Owner Owner  // for people; never proof of anything

	// A claim is granted when nobody waits ahead of it, the name is not closed, and the
	// weights that are held plus Weight are at most Limit. A mutex is Exclusive of
	// Unlimited, a reader 1 of Unlimited, a semaphore k of n. Each claim is held to its
	// own Limit only, so a semaphore can be resized while it is in use.
	Weight, Limit int

	TTL      time.Duration // how long the lease lasts without a renewal, MinTTL to MaxTTL
	QueueTTL time.Duration // how long a place in the queue lasts without a repeat; needed with Queue

	Queue bool // if it cannot be granted: take, or keep, a place in the queue
	Force bool // break all holders, open the name, pass all waiters, and be granted, in one step

	LockDelay time.Duration // how long the name stays closed after this lease expires; 0 is not at all
	Fences    int           // how many fences to reserve in a row, for an exclusive claim; 0 means 1

	// Value is what the name keeps from the grant on, MaxValue bytes at most; nil leaves
	// what it has. A name has one value: of leases side by side, the one that wrote last
	// wrote it.
	Value []byte

	// Above, if it is not nil, is a condition: the claim is granted only if the name has
	// no value, or one that is smaller, compared as bytes.
	Above []byte

	// MinFence is a fence that the caller would like to get, or a greater one. With it
	// the nodes of a quorum, whose clocks never agree to the microsecond, grant the same.
	// It is only a wish, which a backend may ignore. A backend that heeds it goes no more
	// than MaxLead ahead of its own clock, so that no client can spoil the numbers for
	// all. It does not apply to a claim that is granted later, from the queue.
	MinFence uint64

	// Ticket says when the claim came, in microseconds since 1970, so that the queues of
	// a quorum's nodes stand in one order. The claim is queued as if it had come then,
	// but no more than MaxLead before it did, and never later. 0 means now. A claim that
	// stands in the queue keeps its place, whatever the ticket of a repeat. A FenceRaiser
	// heeds tickets; other drivers, and a quorum itself, may ignore them.
	Ticket uint64
}

// MaxLead is how far ahead of the backend's clock Claim.MinFence may bring a fence. A
// range of MaxFences reaches a quarter as far. The price: a backend that lost its data,
// and is back sooner than that, could grant a fence that is no greater.
//
// It is also how far Claim.Ticket counts, and how far the clocks of a backend's own nodes
// may differ: a release that follows an Acquire's end is sent that much after it.
const MaxLead = 250 * time.Millisecond

// The two are one number, so an exclusive claim fits its limit only alone.
const (
	Exclusive = 1<<31 - 1 // the weight of a claim that tolerates no other
	Unlimited = Exclusive // the limit of a claim that only an exclusive one keeps out
)

// Grant is the answer to a claim that was granted.
type Grant struct {
	Fence  uint64        // the first of the range
	Fences int           // how many there are in the range, at least 1; fewer than asked for is allowed
	TTL    time.Duration // the lease lasts at least this long from the moment Acquire was called
}

// LeaseRef names a granted or waiting claim.
type LeaseRef struct {
	Name    string
	Token   Token
	TTL     time.Duration // for Renew: how long it shall last from now
	MinHold time.Duration // for Release: how long after the grant the name stays held; 0 is not at all

	// Value, for Renew and Release: what the name keeps from then on, if the token holds
	// it; nil leaves what it has. A token that only waits writes nothing. What has a
	// Value takes effect before the end of its ctx, see End, or never: a caller that did
	// not hear what became of one waits for that before it writes another.
	Value []byte

	// OnTime, for Release: it takes effect before the end of its ctx, see End, or never.
	// It is for a caller that may claim again with the same token, and must not have an
	// old release end the new claim.
	OnTime bool
}

// Entry is what a backend knows of one name, as people may see it: without tokens.
type Entry struct {
	Name      string
	Fence     uint64 // the last fence granted, ever; 0 if none is remembered
	Holders   []Holder
	Waiters   []Waiter      // in the order in which they will be served
	ClosedFor time.Duration // how much longer nothing will be granted, after a break or an expiry

	// Value is what the name keeps, and ValueFence the fence of the lease that wrote it.
	// nil means that nothing was written, or that it was forgotten: a backend keeps it as
	// long as it keeps the last fence of a name that nobody uses.
	Value      []byte
	ValueFence uint64
}

// Holder is somebody who holds a name.
type Holder struct {
	Fence         uint64
	Weight, Limit int
	Owner         Owner
	Since         time.Time     // of the grant, on the backend's clock: the latest that it can be
	ExpiresIn     time.Duration // from the reading of the entry
	Released      bool          // released, and kept for its minimum hold
}

// Waiter is somebody in the queue of a name.
type Waiter struct {
	Weight, Limit int
	Owner         Owner
	Since         time.Time
	ExpiresIn     time.Duration // of its place, unless it is kept
}

// Owner says who claims, for people to read.
type Owner struct {
	Client string            // a client's id, the same for all its claims
	Host   string            // where it runs
	PID    int               // as which process
	Labels map[string]string // what the user says of the claim; at most MaxLabels
}

// Properties are facts about a backend.
type Properties struct {
	Backend       string        // its short name: "memory", "sqlite"
	Where         string        // its name and place, as in messages: "redis host:6379"; empty without a place
	Clock         Clock         // whose clock decides expiry
	FenceSurvives string        // what fences are known to rise across, in a sentence
	MinTTL        time.Duration // the shortest TTL that the backend can keep; clients refuse shorter ones
	Push          bool          // signals arrive; if not, waiting means asking again
	PushesChanges bool          // a Watcher that tells of changes; if not, watching means asking again

	// Outlasts is by how much a lease may outlast its TTL, where the instant of a grant
	// or a renewal is known as a window.
	Outlasts time.Duration

	// ReportsDeletions means that signals also tell of leases that somebody deleted from
	// the backend by hand. If not, the next renewal finds out.
	ReportsDeletions bool
}

// Clock is the clock that decides what has expired.
type Clock string

// The clocks.
const (
	ClockProcess Clock = "process" // of this process: leases are of this process only
	ClockHost    Clock = "host"    // of this host: leases are of this host only
	ClockServer  Clock = "server"  // of the server, or of several
)

// Finding is one thing that a Diagnoser found.
type Finding struct {
	Severity Severity
	Subject  string // what was looked at
	Detail   string // what is wrong
	Advice   string // what to do
}

// Severity is how bad a Finding is.
type Severity string

// The severities, the worst first.
const (
	SeverityError   Severity = "error"   // guarantees do not hold
	SeverityWarning Severity = "warning" // they hold by luck
	SeverityInfo    Severity = "info"    // good to know
)

// Signal is a push from the backend: a hint that saves waiting.
type Signal struct {
	Kind   SignalKind
	Token  Token  // whom it concerns; zero, with SignalLook, means everybody
	Fence  uint64 // with SignalGranted
	Fences int    // with SignalGranted
}

// SignalKind says what a signal is about.
type SignalKind int

const (
	SignalLook    SignalKind = iota // something changed, or may have: ask again
	SignalGranted                   // the waiting token was granted, for what its place would have lasted
	SignalLost                      // the token no longer holds its lease: check
)
