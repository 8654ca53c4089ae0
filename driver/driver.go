// Package driver defines the interface of a backend of Pawl.
//
// A backend stores one [Entry] per name and changes it in atomic steps. It never waits or
// renews, and Close ends all its goroutines. The root package waits, renews, and notifies
// holders of a loss, for all backends.
//
// Users do not need this package. To write a backend:
//
//  1. Implement [Driver]. A backend with transactions gets the algorithm from
//     [github.com/pawl-go/pawl/locktable], one with compare-and-swap only from
//     [github.com/pawl-go/pawl/locktable/swap].
//  2. Implement the optional abilities that the backend has, and no others: [Signaler],
//     [Watcher], [Lister], [LeaseBreaker], [Diagnoser], [FenceRaiser], [AllAcquirer].
//     New and Open of the backend return a [Driver]; its users find the abilities with
//     [As]. A driver that wraps another one keeps the abilities of that driver if it has
//     a method Unwrap.
//  3. Run [github.com/pawl-go/pawl/drivertest] on it.
//  4. Call [Register] with its URL scheme.
//
// This package stays v0 when the root package becomes v1, and so do drivertest and
// locktable: a minor version may change them. A v1 of them would freeze the interface of
// backends, and the stored form of entries. The promises to users are in the root
// package.
package driver

import (
	"context"
	"iter"
	"time"
)

// Driver is one client of one backend. Many goroutines may call its methods at once.
//
// These rules hold for every method:
//
//   - The backend's clock decides what has expired, never the caller's. A lease is over
//     at the instant of its expiry.
//   - A step changes one name, atomically. It first removes expired leases and places,
//     then grants to the head of the queue while it fits.
//   - fence = max(last fence of this name + 1, the backend's time in microseconds since
//     1970), in the same step as the grant. So fences rise even after the backend has
//     deleted the name.
//   - Names are compared byte for byte.
//   - ctx bounds the call: the method returns as soon as ctx ends, even if the backend
//     has not answered. The driver deals with a request that is then still under way.
//   - Every Acquire has an end, see [End]: it takes effect before its end, by the
//     backend's clock, or never. So a late request, whose caller has given up or sent
//     another request, changes nothing.
//   - After an error that is not named here, the outcome is unknown. The caller then
//     sends the request again with the same token, or releases the token. If an Acquire
//     with the token was not answered, the caller releases the token once more after the
//     end of the last such Acquire. One release is not enough, because the backend may
//     handle the Acquire after that release.
//   - If [Claim.Validate] refuses the input, the method returns that error and sends
//     nothing. After Close every method returns [ErrClosed]. A failure of the backend is
//     an [*Error].
type Driver interface {
	// Acquire makes one attempt and never waits.
	//
	// It is idempotent per token: a repeat after a lost reply returns the same grant, and
	// extends it to a full TTL from now. If the claim cannot be granted, the error is a
	// [*HeldError]. If c.Queue is set, the claim then has a place in the queue, and each
	// repeat renews that place for another QueueTTL. A claim whose place has expired
	// joins again at the end.
	//
	// A step that frees a name (a Release, or any step that finds an expired holder) also
	// grants the name to the head of the queue. Such a grant lasts as long as the
	// waiter's place would have lasted. The next Acquire or Renew extends it to a TTL.
	//
	// A claim that arrives after its end is not granted, does not queue, and breaks no
	// lease.
	//
	// With c.Value the name keeps that value from the grant on, even after a later grant
	// from the queue. If the token already holds the name, a repeat writes nothing.
	//
	// With c.ValueBelow the claim may be refused with a [*ValueNotBelowError]; then it
	// breaks no lease and loses its place in the queue, if it had one. If a waiter's turn
	// comes while the value is not below its ValueBelow, it loses its place in the same
	// step. It gets a SignalRetry, and the next waiter gets the turn.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew makes leases last their TTL from now. It extends a lease only if the token
	// holds it: it never creates or shortens a lease. It answers per lease, in order:
	// nil, ErrNoSuchLease (a [*BrokenError] if the backend knows who broke it), or an
	// error of that lease alone. If the second result is an error, the outcome of the
	// whole batch is unknown. Leases with a Value have an end, like an Acquire.
	Renew(ctx context.Context, leases []LeaseRef) ([]error, error)

	// Release ends a lease, or leaves the queue, and grants the name to the next waiters.
	// It returns ErrNoSuchLease if the token neither holds nor waits: it never held, was
	// released before, expired, or was broken. With l.MinHold, the name stays held until
	// MinHold after the grant, but no longer by this token. With l.HasEnd, or a Value,
	// the release has an end, like an Acquire.
	Release(ctx context.Context, l LeaseRef) error

	// Inspect reads one name, for people. It leaves out expired leases and places. A name
	// that was never locked, or was deleted, is an empty Entry, not an error.
	Inspect(ctx context.Context, name string) (Entry, error)

	// Properties returns facts about this backend, as far as the driver knows them now.
	// It never blocks.
	Properties() Properties

	// Close closes the connections that the driver itself has opened. It does not release
	// leases. A second Close does nothing.
	Close() error
}

// Signaler is a driver whose backend can push.
type Signaler interface {
	// Listen calls f for each signal about a token that was claimed through this driver,
	// until stop is called. f must not block. Several goroutines may call it at the same
	// time, even in a method of the driver. A signal may be late, repeated or missing, so
	// only speed may depend on it.
	Listen(f func(Signal)) (stop func())
}

// Watcher is a driver that can report changes to a name, by any client. [Watchers] keeps
// the list of watches for it.
type Watcher interface {
	// Watch calls f soon after each change of the name's Entry, until stop or Close is
	// called. The renewal of a lease or a place is not a change. An expiry is reported
	// when a step detects it. f must not block.
	//
	// A call may be late, repeated or missing, so only speed may depend on it. Neither
	// Watch nor stop waits for the backend. If the driver subscribes to the name after
	// Watch has returned, or subscribes again after a failure, it then calls f, because
	// the name may have changed before.
	Watch(name string, f func()) (stop func())
}

// Lister is a driver that can list its names.
type Lister interface {
	// List yields the entries whose name starts with prefix and that are held, waited
	// for, or closed, in byte order of their names. It is not a snapshot: each entry is
	// true at its own instant. If one row is damaged, List yields its error with an Entry
	// that has only the Name, and goes on. Any other error comes with an empty Entry, and
	// ends the list.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
}

// LeaseBreaker is a driver that can break leases.
type LeaseBreaker interface {
	// Break ends the lease that has this fence, or whose range of fences contains it. It
	// keeps the name closed for delay, so that the holder can stop before the next one
	// starts. The holder's next renewal says who broke the lease, and how long the name
	// stays closed. Break returns ErrNoSuchLease, and changes nothing, if no holder has
	// this fence.
	Break(ctx context.Context, name string, fence uint64, delay time.Duration, by Owner) error
}

// Diagnoser is a driver that can examine its server's settings.
type Diagnoser interface {
	// Diagnose returns a Finding for each setting that a careful operator would change,
	// most serious first. A Finding without advice names the server and its version.
	Diagnose(ctx context.Context) ([]Finding, error)
}

// FenceRaiser is a driver whose fences can be raised. It is for quorums. When nodes have
// granted one claim with different fences, the quorum raises them all to a fence that a
// majority agrees on, before it returns the grant.
type FenceRaiser interface {
	// RaiseFence raises the fence of the token's lease to at least fence, unless it is
	// already as high. It returns the resulting fence. A range keeps its length.
	//
	// Two leases of one name never have the same fence. If other leases were granted
	// after this one, the result is greater than all of their fences, and maybe greater
	// than fence. The next grant gets a fence above the result. If the limit of this
	// lease leaves no room after the later leases, the error is a [*HeldError].
	//
	// With l.Value the name keeps that value, unless this lease has already written one.
	// So a quorum writes a claim's value when a majority has granted the claim.
	//
	// RaiseFence neither extends the lease nor creates one: it returns ErrNoSuchLease, as
	// Renew does, if the token holds nothing. After an error nothing is changed.
	RaiseFence(ctx context.Context, l LeaseRef, fence uint64) (uint64, error)
}

// AllAcquirer is a driver that can grant claims of several names in one atomic step.
type AllAcquirer interface {
	// AcquireAll makes one attempt at all of the claims: it grants each, or none. The
	// claims must pass [ValidateAll]. If some claims cannot be granted, the error is the
	// answer of Acquire to the first of these in the slice, and contains its name. Like
	// every step, AcquireAll grants a name whose holder has expired to the name's
	// waiters, even if it grants no claim; the error then names the new holder.
	//
	// The rules of Acquire hold for each claim. All claims have the same end. A claim may
	// be repeated with its token. After an unknown outcome the caller releases each
	// token. A token that already holds its name keeps it, whether or not the other
	// claims are granted.
	//
	// An error that is [errors.ErrUnsupported] says that these claims cannot be granted
	// in one step, for example because their names are on different servers. Then nothing
	// was sent, and the caller uses Acquire.
	AcquireAll(ctx context.Context, claims []Claim) ([]Grant, error)
}

// Claim is one attempt to hold a name.
type Claim struct {
	Name  string // the name to lock, see ValidateName
	Token Token  // new for each claim; secret, because it can release the lease
	Owner Owner  // for people; never proof of anything

	// A claim is granted when no waiter is ahead of it, the name is not closed, and the
	// weights that are held plus Weight are at most Limit. A mutex is Exclusive of
	// Unlimited, a reader 1 of Unlimited, a semaphore k of n. Each claim is checked
	// against its own Limit only, so a semaphore can be resized while it is in use.
	Weight, Limit int

	TTL      time.Duration // how long the lease lasts without a renewal, MinTTL to MaxTTL
	QueueTTL time.Duration // how long a place in the queue lasts without a repeat; needed with Queue

	Queue bool // take or renew a place in the queue if the claim cannot be granted
	Force bool // break all holders, open the name, pass all waiters, and be granted, in one step

	LockDelay time.Duration // how long the name stays closed after this lease expires; 0 leaves it open
	Fences    int           // how many fences to reserve in a row, for an exclusive claim; 0 means 1

	// Value is the value of the name from the grant on, MaxValue bytes at most; nil
	// leaves the value as it is. A name has one value. If several leases hold the name,
	// the last write counts.
	Value []byte

	// ValueBelow, if it is not nil, is a condition: the claim is granted only if the name
	// has no value, or a smaller one, compared as bytes.
	ValueBelow []byte

	// MinFence is the lowest fence that the caller prefers. With it the nodes of a
	// quorum, whose clocks never agree to the microsecond, grant the same fence. A
	// backend may ignore it. A backend that uses it goes no more than MaxLead ahead of
	// its own clock, so that no client can use up all fences. A later grant from the
	// queue ignores MinFence.
	MinFence uint64

	// Ticket is the time of the claim, in microseconds since 1970, so that all nodes of a
	// quorum queue claims in the same order. The claim is queued as if it had arrived
	// then, but at most MaxLead before its arrival, and never after it. 0 means now. A
	// claim that is already in the queue keeps its place: the ticket of a repeat has no
	// effect. A FenceRaiser must use tickets; other drivers, and a quorum itself, may
	// ignore them.
	Ticket uint64
}

// MaxLead is the largest lead over the backend's clock to which Claim.MinFence may raise
// a fence. A range of MaxFences reaches 65 ms ahead, a quarter of MaxLead. If a backend
// loses its data, and restarts within MaxLead, it may grant a fence that is no greater
// than an earlier one.
//
// It also bounds the age of a Claim.Ticket, and the difference between the clocks of a
// backend's own nodes. So a caller that has to release after an Acquire's end waits
// MaxLead longer.
const MaxLead = 250 * time.Millisecond

// Exclusive and Unlimited are the same number, so an exclusive claim fits its limit only
// if no other lease holds the name.
const (
	Exclusive = 1<<31 - 1 // the weight of a claim that excludes all other holders
	Unlimited = Exclusive // the limit of a claim that allows all holders that are not exclusive
)

// Grant is the answer to a claim that was granted.
type Grant struct {
	Fence  uint64        // the lease's fence; of a range, the first
	Fences int           // the number of fences in the range, at least 1; it may be less than the claim asked for
	TTL    time.Duration // the lease lasts at least this long from the moment Acquire was called
}

// LeaseRef names a granted or waiting claim.
type LeaseRef struct {
	Name    string
	Token   Token
	TTL     time.Duration // for Renew: how long the lease lasts from now
	MinHold time.Duration // for Release: how long after the grant the name stays held at least; 0 means no minimum

	// Value, for Renew and Release, is the value of the name from then on, if the token
	// holds the name; nil changes nothing. The token of a waiter writes nothing. A
	// request with a Value takes effect before the end of its ctx, see End, or never. So
	// a caller that got no answer waits for that end before it writes another value.
	Value []byte

	// HasEnd, for Release: the release takes effect before the end of its ctx, see End,
	// or never. A caller sets it if it may claim again with the same token: a late
	// release must not end the new claim.
	HasEnd bool
}

// Entry is the public part of a backend's entry of one name: it has no tokens.
type Entry struct {
	Name      string
	Fence     uint64 // the last fence granted, ever; 0 if the backend remembers none
	Holders   []Holder
	Waiters   []Waiter      // in the order in which they will be served
	ClosedFor time.Duration // how much longer nothing will be granted, after a break or an expiry

	// Value is the value of the name, and ValueFence the fence of the lease that wrote
	// it. A nil Value means that no lease wrote one, or that the backend has deleted it.
	// The backend keeps a value as long as the last fence of an unused name.
	Value      []byte
	ValueFence uint64
}

// Holder is one lease on a name.
type Holder struct {
	Fence          uint64
	Permits, Limit int
	Owner          Owner
	Since          time.Time     // the latest possible time of the grant, on the backend's clock
	TTL            time.Duration // the TTL that the last Acquire or Renew of its token asked for
	ExpiresIn      time.Duration // the time left when the entry was read
	Released       bool          // released, and kept for its minimum hold
}

// Waiter is one claim in the queue of a name.
type Waiter struct {
	Permits, Limit int
	Owner          Owner
	Since          time.Time
	ExpiresIn      time.Duration // the time until its place expires, unless the waiter renews it
}

// Properties are facts about a backend.
type Properties struct {
	Backend       string        // its short name: "memory", "sqlite"
	Location      string        // its name with its address, for messages: "redis host:6379"; empty without an address
	Clock         ClockSource   // whose clock decides expiry
	FenceSurvives FenceSurvival // the events after which the next fence is still greater
	MinTTL        time.Duration // the shortest TTL that the backend can keep; clients refuse shorter ones
	PushesGrants  bool          // it sends signals; if not, waiters poll
	PushesChanges bool          // it is a Watcher that reports changes; if not, watches poll

	// MaxOverrun is the longest time by which a lease may outlast its TTL, on a backend
	// that knows the instant of a grant or a renewal only as a window.
	MaxOverrun time.Duration

	// ReportsDeletions means that signals also report leases that an operator deleted
	// from the backend. If not, the holder's next renewal detects the loss.
	ReportsDeletions bool
}

// ClockSource is the clock that decides what has expired.
type ClockSource string

// The clocks.
const (
	ClockProcess ClockSource = "process" // the clock of this process, so leases are valid in this process only
	ClockHost    ClockSource = "host"    // the clock of this host, so leases are valid on this host only
	ClockServer  ClockSource = "server"  // the clock of the server, or the clocks of several servers
)

// FenceSurvival says after which events the next fence is still greater. A backend to
// which no constant applies sets a sentence of its own.
type FenceSurvival string

// The events. Fences that follow a clock rise even after a loss of data, unless that
// clock is set back past the last grant of a lost name.
const (
	FencesRiseInProcess     FenceSurvival = "process"       // no event: fences end with the process
	FencesRiseByClock       FenceSurvival = "clock"         // a loss of data, too: fences follow Properties.Clock
	FencesRiseByClientClock FenceSurvival = "client clocks" // a loss of data, too: fences follow clients' wall clocks
	FencesRiseByMajority    FenceSurvival = "majority"      // any event that leaves a majority of the nodes their data
)

// String is the sentence for people.
func (s FenceSurvival) String() string {
	switch s {
	case FencesRiseInProcess:
		return "nothing: fences rise for as long as the process lives"
	case FencesRiseByClock:
		return "restarts, fail-overs and lost data, as long as the clock that decides expiry does not go back past the last grant " +
			"of a name that was lost or forgotten"
	case FencesRiseByClientClock:
		return "elections, restarts, an older snapshot that is restored, and the loss of all data, if the clients' clocks are right"
	case FencesRiseByMajority:
		return "all that leaves a majority of the nodes with their data; a node that lost its own must stay away for the longest TTL"
	}
	return string(s)
}

// Finding is one thing that a Diagnoser found. In JSON it has the keys that
// `pawl doctor --json` prints.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"` // the examined part
	Detail   string   `json:"detail"`  // the result
	Advice   string   `json:"advice"`  // what to do; empty for a fact that is not a problem
}

// IsFact reports whether the finding only describes the server.
func (f Finding) IsFact() bool { return f.Severity == SeverityInfo && f.Advice == "" }

// Severity is the rank of a Finding: error, warning or info.
type Severity string

// The severities, the worst first.
const (
	SeverityError   Severity = "error"   // guarantees do not hold
	SeverityWarning Severity = "warning" // guarantees hold only while nothing goes wrong
	SeverityInfo    Severity = "info"    // good to know
)

// Signal is a notification from the backend: a hint that saves waiting.
type Signal struct {
	Kind   SignalKind
	Token  Token  // the claim that it concerns; zero, with SignalRetry, means every claim
	Fence  uint64 // the fence that was granted; of a range, the first
	Fences int    // how many fences were granted; like Fence, only with SignalGranted
}

// SignalKind says what a signal is about.
type SignalKind int

const (
	SignalRetry   SignalKind = iota // the name may have changed: the waiter or holder asks again
	SignalGranted                   // the waiting token was granted, for as long as its place would have lasted
	SignalLost                      // the token no longer holds its lease: the holder checks
)
