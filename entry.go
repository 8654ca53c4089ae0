package pawl

import (
	"github.com/pawl-go/pawl/driver"
)

// Entry is the backend's entry of one name, without tokens. Its fields:
//
//   - Name.
//   - Fence: the last fence granted on the name, 0 if the backend remembers none.
//   - Holders: a [Holder] for each lease.
//   - Waiters: a [Waiter] for each claim in the queue, in the order in which the
//     backend will serve them.
//   - ClosedFor: how much longer the backend grants nothing, after a break or an
//     expiry.
//   - Value and ValueFence: what the name keeps, and the fence of the lease that
//     wrote it.
type Entry = driver.Entry

// Holder is one lease on a name. Its fields:
//
//   - Fence, and its Owner.
//   - Permits and Limit: for a semaphore, the number of its permits, and the n that its
//     caller gave. Its method Kind returns the [Kind].
//   - Since: when it was granted, on the backend's clock.
//   - TTL: the TTL of its last claim or renewal. [Client.Break] closes the name for
//     that long, so that a holder that cannot reach the backend gives up by itself.
//   - ExpiresIn: how long it lasts if it is not renewed.
//   - Released: its holder has released it, and its minimum hold still keeps the name.
type Holder = driver.Holder

// Waiter is one claim in the queue of a name. Its fields:
//
//   - Owner: whose claim it is.
//   - Permits and Limit: for a semaphore, the number of permits that it claims, and the n
//     that its caller gave. Its method Kind returns the [Kind].
//   - Since: when it began to wait.
//   - ExpiresIn: how long its place lasts if the waiter does not renew it.
type Waiter = driver.Waiter

// Kind says which other claims a holder or a waiter excludes: all, those that are not
// shared, or those that do not fit into the limit.
type Kind = driver.Kind

// The kinds.
const (
	KindExclusive = driver.KindExclusive // of a mutex, or of a writer
	KindShared    = driver.KindShared    // of a reader
	KindPermits   = driver.KindPermits   // of a semaphore
)

// Owner identifies a holder or a waiter to people: the ID of its Client, its Host and
// PID, and its Labels.
type Owner = driver.Owner

// Properties are facts about a backend. Its fields:
//
//   - Backend is its short name: "redis". Location adds its address, as errors
//     show it, and the namespace of the client, if it has one.
//   - Clock decides what has expired.
//   - FenceSurvives says after which events the next fence is still greater.
//   - MinTTL is the shortest TTL that the backend can keep; pawl refuses a shorter
//     one.
//   - PushesGrants means that the backend wakes waiters; otherwise they poll.
//   - PushesChanges means the same for [Client.Watch].
//   - MaxOverrun is the longest time by which a lease may outlast its TTL.
//   - ReportsDeletions means that the backend notifies a holder at once when an operator
//     deletes its entry by hand; otherwise the holder's next renewal detects that.
type Properties = driver.Properties

// ClockSource names the clock that decides what has expired: the clock of the process, of
// the host, or of the server. See [Properties].
type ClockSource = driver.ClockSource

// The clocks.
const (
	ClockProcess = driver.ClockProcess // all clients are in this process
	ClockHost    = driver.ClockHost    // all clients are on this host
	ClockServer  = driver.ClockServer  // clients are on any hosts, and the server's clock decides
)

// FenceSurvival says after which events the next fence is still greater. Its String is a
// sentence for people. See [Properties].
type FenceSurvival = driver.FenceSurvival

// The events after which the next fence is still greater.
const (
	FencesRiseInProcess     = driver.FencesRiseInProcess     // none: fences end with the process
	FencesRiseByClock       = driver.FencesRiseByClock       // even a loss of data: fences follow the backend's clock
	FencesRiseByClientClock = driver.FencesRiseByClientClock // even a loss of data: fences follow the clients' clocks
	FencesRiseByMajority    = driver.FencesRiseByMajority    // any event that leaves a majority of the nodes their data
)

// Finding is one result of [Client.Diagnose]: its Severity, its Subject, the Detail, and
// the Advice. See [driver.Finding.IsFact].
type Finding = driver.Finding

// Severity is the rank of a [Finding]: error, warning or info.
type Severity = driver.Severity

// The severities, the worst first.
const (
	SeverityError   = driver.SeverityError   // guarantees do not hold
	SeverityWarning = driver.SeverityWarning // guarantees hold only while nothing goes wrong
	SeverityInfo    = driver.SeverityInfo    // good to know
)
