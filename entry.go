package pawl

import (
	"github.com/pawl-go/pawl/driver"
)

// Entry is what a backend knows of one name. It holds no token. Its fields:
//
//   - Name and Fence: the last fence granted on the name, 0 if none is remembered.
//   - Holders: a [Holder] for each lease.
//   - Waiters: a [Waiter] for each claim in the queue, in the order in which they will be
//     served.
//   - ClosedFor: how much longer nothing will be granted, after a break or an expiry.
//   - Value and ValueFence: what the name keeps, and the fence of the lease that wrote
//     it.
type Entry = driver.Entry

// Holder is one lease on a name: its Fence, its Weight out of Limit, its Owner, Since
// when it is held, on the backend's clock, and in how long it ExpiresIn if it is not
// renewed. Released means that it is kept only for its minimum hold.
type Holder = driver.Holder

// Waiter is one claim in the queue of a name: its Weight out of Limit, its Owner, Since
// when it waits, and in how long its place ExpiresIn if the waiter does not keep it.
type Waiter = driver.Waiter

// Owner says who claims, for people to read: the Client's id, its Host and PID, and
// Labels.
type Owner = driver.Owner

// Properties are facts about a backend. Its fields:
//
//   - Backend is its short name: "redis". Where is the name and the place, as errors have
//     them, and the namespace of the client, if it has one.
//   - Clock is whose clock decides what has expired.
//   - FenceSurvives says in a sentence across what fences are known to rise.
//   - MinTTL is the shortest TTL that it can keep; a shorter one is refused.
//   - Push means that waiters are woken by the backend; otherwise they ask again.
//   - PushesChanges means the same for [Client.Watch].
//   - Outlasts is by how much a lease may outlast its TTL in the backend.
//   - ReportsDeletions means that a holder hears at once that its lease was deleted by
//     hand; otherwise by the next renewal.
type Properties = driver.Properties

// Clock is the clock that decides what has expired: of the process, of the host, or of
// the server. See [Properties].
type Clock = driver.Clock

// The clocks.
const (
	ClockProcess = driver.ClockProcess // leases are of this process only
	ClockHost    = driver.ClockHost    // leases are of this host only
	ClockServer  = driver.ClockServer
)

// Finding is what [Client.Diagnose] found: its Severity, its Subject, the Detail, and the
// Advice.
type Finding = driver.Finding

// Severity is how bad a [Finding] is.
type Severity = driver.Severity

// The severities, the worst first.
const (
	SeverityError   = driver.SeverityError   // guarantees do not hold
	SeverityWarning = driver.SeverityWarning // they hold by luck
	SeverityInfo    = driver.SeverityInfo    // good to know
)
