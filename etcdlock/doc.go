// Package etcdlock keeps locks in etcd 3.4 or later. Most programs need only its URL:
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
//	dial_timeout=5s      for logging in with a password
//
//	ca=FILE              with etcds: trust only the authorities in this PEM file
//	cert=FILE, key=FILE  with etcds: the client's own certificate
//	server_name=NAME     with etcds: the name in the servers' certificates
//	skip_verify=true     with etcds: trust any certificate
//
// # What does the cluster need?
//
// With authentication, a role with readwrite on all keys that begin with PREFIX//. And
// compaction (--auto-compaction-retention): each renewal is a revision, and etcd keeps
// them all until then. The driver's Diagnose (`pawl doctor`) looks at that.
//
// # What does a lock cost?
//
// Acquire and release are one request each, a name that is new to a process costs one
// more. 60 leases share a request for their renewal. A process has two watches and one
// etcd lease, whatever it holds; nothing but the key of its inbox for signals hangs on
// that lease. While locks are in use the clock costs up to ten requests a second, and one
// every ten seconds otherwise, for all processes together.
//
// # What is guaranteed?
//
// What etcd says of its data: it survives elections, restarts, and the loss of a minority
// of the members, and a member that is cut off decides nothing. A lease lasts up to 0.4 s
// longer than was asked for, and a little more where clients come and go all the time.
// A snapshot that is restored brings back the locks of then, and fences may come again.
//
// # Whose clock decides?
//
// etcd has no clock that can be read, so the clients of a prefix keep one, in a key. Each
// writing of that key is a tick: it says where the clock stands, T, and how far the next
// tick may go at most, its room. Whoever wants to tick compares and swaps: T becomes no
// more than T plus what its own monotonic clock says has passed since it received the
// last tick, and no more than T plus room. The first tick is the time of day, and is
// written only where there are no locks.
//
// A step is one transaction: if the last tick is the one that it was computed under, and
// the entry has the revision that it was computed from, the new entry is put. So what is
// granted under a tick T with room r is written before the next tick. It is stored to end
// at T + r + slip + TTL.
//
// Nobody finds it expired before a TTL has passed since it was written: the next tick is
// written later, and stands at T + r at most. So from there on the clock has to go TTL +
// slip further, and it never goes further than time passes, but for slip: a tick counts
// from when the last one was received, which is after it was written, so what passes
// between the two writings is more. Where a client follows its own tick, it counts from
// when that was sent, or slip before it was answered if that is later. Then what is
// counted too much is the time from the sending of one tick to its writing. That is slip
// at most, and does not add up: what the next tick counts begins where this one was sent,
// and so on, and of the first and the last of them one slip is left. A step that is
// computed between two ticks uses what has passed since the first; that is counted in the
// same way.
//
// So all that is assumed is that the monotonic clocks of the clients run at one speed,
// within what [github.com/pawl-go/pawl] allows for every lease. A client that is paused,
// an election, a watch that is late or compacted, a lost etcd lease: each makes the clock
// late, and things end later, never sooner.
//
// While nobody is there, no time passes. The last to leave that knows of a lease which
// lasts leaves a sandglass: a key on an etcd lease. When it is gone and no tick has come
// since, so much has passed at least. So a job that is started again and again by cron,
// tries, fails and ends sees a dead holder end.
//
// # When does a request end that was given up?
//
// By that clock, [driver.End] is kept: a step is computed for an end that the clock has
// not passed, and takes effect under the tick that it was computed under or not at all.
// The end of a ctx is a moment in real time, though, and the clock may stand still past
// it if no tick comes. Three things see to that. Clients that are open tick, each second
// while there has been a claim within the last minute. A step that changes a name makes
// all that were computed before it void, for the entry has another revision. And a
// release, which is what a caller sends of whose claim nothing is known, writes the entry
// even if it finds nothing to release. So whatever comes after that release changes
// nothing.
package etcdlock
