// Package etcdlock keeps locks in etcd. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/etcdlock"
//
//	locks, err := pawl.Open(ctx, "etcd://n1:2379,n2:2379,n3:2379", nil)
//
// With a client of go.etcd.io/etcd/client/v3 that you have already, [New] makes the
// driver.
//
// # Which URLs are there?
//
//	etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX]
//	etcds://...                               the same with TLS
//
// Name all members; the port is 2379 by default. User and password are percent-encoded.
// PREFIX begins all keys; without one it is pawl.
//
//	retention=24h        how long the last fence of a name is remembered
//	dial_timeout=5s      how long it may take until the cluster answers, at opening
//
//	ca_cert=FILE         with etcds: trust only the authorities in this PEM file
//	client_cert=FILE     with etcds: the client's own certificate, and
//	client_key=FILE      its key
//	server_name=NAME     with etcds: the name in the servers' certificates
//	skip_verify=true     with etcds: trust any certificate
//
// # What does the cluster need?
//
// It was tested on etcd 3.7.3, of one member and of three, and needs nothing that 3.4 has
// not: there most of the tests were run once, on 3.4.23, and not the whole suite.
//
// With authentication, a role with readwrite on all keys that begin with PREFIX//. And
// compaction (--auto-compaction-retention): each renewal is a revision, and etcd keeps
// them all until then. The driver's Diagnose (`pawl doctor`) looks at that.
//
// # What does a lock cost?
//
// Acquire and release are one request each, a name that is new to a process costs one
// more. Goroutines that come at the same time share requests: at most 60 names, for a
// renewal as for the rest. A process has two watches and one etcd lease, whatever it
// holds; nothing but the key of its inbox for signals hangs on that lease. While locks
// are in use the clock costs up to seven requests a second, and one every ten seconds
// otherwise, for all processes together; a process that is busy writes its ticks with
// what it sends anyway.
//
// # What is guaranteed?
//
// What etcd says of its data: it survives elections, restarts, and the loss of a minority
// of the members, and a member that is cut off decides nothing. A lease lasts 0.35 s
// longer than was asked for, and two round trips more where these take 50 ms or longer. A
// snapshot that is restored brings back the locks of then: who has one of them ends in
// its time, and who got one later is told that it is lost.
//
// Fences rise across all of that, and where a snapshot is restored or all data is lost:
// a fence is no lower than the time of day, by the wall clock of the client that asks. So
// across a loss of data, and only there, those clocks have to agree to within the time
// that it took. That is all that a wall clock is asked for, but for the first tick.
//
// # Whose clock decides?
//
// etcd has no clock that can be read, so the clients of a prefix keep one, in a key. Each
// writing of that key is a tick: it says where the clock stands, T, and how far the next
// tick may go at most, its room. The first tick is the time of day, and is written only
// where there are no locks. All others are written by compare and swap, by clients that
// have received the one before.
//
// Each client has a reading of the clock, which goes on with its own monotonic clock.
// When it receives a tick it puts the reading to T, if it is behind that, and to T +
// slip, if it is further ahead; and to just T, if it has not received the tick that this
// one follows, which each tick names. Until the next tick the reading goes no further
// than T + room. Whoever ticks writes down its reading.
//
// So no reading under a tick, or under a later one, is further ahead of that tick than
// the time since it was written, and slip. For whoever received it had its reading put to
// T + slip or less, after it was written, and goes on as time does. A later tick can only
// put a reading forward to what another client had read before it was written, and that
// one had received this tick or one after it: what holds for its reading holds for this
// one, too. Who was ahead before, and missed this tick, is put to that as well.
//
// A step is one transaction: if the last tick is the one that the client has received,
// and the entry has the revision that it was computed from, the new entry is put. A step
// whose reading has used up the room writes a tick in the same transaction, and counts as
// taken under that. What is granted at a reading R is stored to end at R + room + slip +
// TTL. If another tick has been received since it was computed, it is sent only if that
// is no later than R, and the reading is still no less.
//
// A client that is far away has mostly not heard of the last tick when a step of it
// arrives. So where answers take 50 ms or longer, a step that writes no tick is taken
// under any tick from the one that the client has received up to one that says R + width,
// two round trips, unless it is the tick of a clock at rest; and what it grants ends a
// width later. What is said next of R is true of R + width then: the tick says no more.
// Who has not received the tick under which something was granted finds it expired even
// less, for its reading goes no further than the room of an earlier one.
//
// So nobody finds it expired before a TTL has passed since it was written. Under the same
// tick no reading goes beyond T + room. The next tick is written after it, and says T +
// room at most. From there on a reading is as much further as time has passed since, and
// slip; so it comes to R + room + slip + TTL when at least a TTL has passed.
//
// So all that is assumed is that the monotonic clocks of the clients run at one speed,
// within what [github.com/pawl-go/pawl] allows for every lease. docs/models/tick.pml is
// this argument as a program that is run in every order of its steps. A client that is
// paused, an election, a watch that is late or compacted, a lost etcd lease: each makes
// the clock late, and things end later, never sooner. One that comes and goes does not:
// those that stay have their readings, and the next tick is theirs.
//
// While nobody is there, no time passes. The last to leave that knows of a lease which
// lasts leaves a sandglass: a key on an etcd lease. When it is gone and no tick has come
// since, so much has passed at least. One that comes and finds a name held while nobody
// ticks turns it, too, before it is refused. So a job that is started again and again by
// cron, tries, fails and ends sees a dead holder end, also if it ends without Close.
//
// # When does a request end that was given up?
//
// By that clock, [driver.End] is kept: a step is computed for an end that the clock has
// not passed, and takes effect under a tick that is no later than that or not at all.
// The end of a ctx is a moment in real time, though, and the clock may stand still past
// it if no tick comes. Three things see to that. Clients that are open tick, each second
// while there has been a claim within the last minute. A step that changes a name makes
// all that were computed before it void, for the entry has another revision. And a
// release, which is what a caller sends of whose claim nothing is known, writes the entry
// even if it finds nothing to release; so does a claim that is repeated and finds nothing
// to extend. So whatever was given up before one of these, and comes after it, changes
// nothing.
package etcdlock
