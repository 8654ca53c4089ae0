// Package fence checks fencing tokens on the side of the data: it refuses a write with an
// old fence, whose holder was paused and has lost the lock to another holder.
//
// A lock cannot stop a write that is already on its way. Only the data store can. It
// remembers, for each resource, the highest fence that it has accepted, and refuses a
// lower fence with a [StaleError]. It accepts one fence again and again, because a holder
// writes more than once. [pawl.Lease.Fence] returns the fence. Inside of Do,
// [pawl.FenceOf] reads it from the context.
//
//   - [Memory] is for a service that keeps its data itself.
//   - [CheckPostgres], [CheckMySQL] and [CheckSQLite] are one statement in the caller's
//     own transaction, which must not commit if the check fails. CheckLease of
//     postgreslock, mysqllock and sqlitelock is safer, for locks in the same database.
//   - [RedisScript] wraps the caller's script, so that it runs only if the fence is good.
//   - [Mongo] is merged into the caller's own update.
//   - [UpdateObject] is a conditional put to an S3-like store.
//   - [Handler] and [Transport] carry the fence over HTTP.
//   - [Compare] is for a store that this package does not support.
//
// If a holder reads, computes and writes, check its fence before it reads, too. Otherwise
// the store accepts a write of the old holder that comes before the new holder's first
// write, and the data that the new holder has read is out of date.
//
// # Which fences may be compared?
//
// Only fences of the same name may be compared. One lock guards a resource, and fences of
// two names are unrelated. [pawl.FenceOf] returns the fence of a name, or 0 if ctx is
// under no lease on it. Every check refuses 0 with a [*pawl.InvalidError].
//
// # What of readers and permits?
//
// Readers hold side by side, as permits do, so the order of their fences means nothing. A
// reader's fence is as good as a higher one until a writer comes in between.
// [Memory.CheckReader], [CheckPostgresReader], [RedisReaderScript] and [MongoReader]
// compare it only with fences of writers. Then they refuse a writer that held before the
// reader. For writes under a permit no fence can be compared: a permit with a much lower
// fence may still be held. [Holders] asks the backend whether a permit is held.
//
// docs/fencing.md compares these checks, with the errors that a paused holder gets.
//
// The idea is Martin Kleppmann's: How to do distributed locking, 2016.
package fence
