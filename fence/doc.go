// Package fence is the side that checks: it refuses a write that carries an old fencing
// token, because its holder was paused and has lost the lock to another.
//
// A lock cannot stop a write that is already on its way; only what is written to can. It
// remembers, per resource, the highest fence that it has accepted, and refuses a lower
// one with a [StaleError]. A fence is accepted again and again, for its holder writes
// more than once. The number is in [pawl.Lease.Fence] and, inside of Do, in the context:
// [pawl.FenceOf].
//
//   - [Memory] is for a service that keeps its data itself.
//   - [CheckPostgres], [CheckMySQL] and [CheckSQLite] are one statement in the caller's
//     own transaction, which must not commit if they fail. Where the locks are in the
//     same database, CheckLease of postgreslock, mysqllock and sqlitelock is safer yet.
//   - [RedisScript] makes a script of a script: the write happens only if the fence is
//     good.
//   - [Mongo] is merged into the caller's own update.
//   - [UpdateObject] is a conditional put to an S3-like store.
//   - [Handler] and [Transport] carry the fence over HTTP.
//   - [Compare] is for a store of one's own.
//
// Who reads, computes and writes has its fence checked before it reads, too: else an old
// holder whose write comes before the new one's first is let in, and what the new one
// read before that is not true any more.
//
// # Which fences may be compared?
//
// Those of one name. A resource is guarded by one lock; fences of two names have nothing
// to do with each other. [pawl.FenceOf] has the fence of a name, and 0 where ctx is under
// no lease on it, which every check refuses with a [*pawl.InvalidError].
//
// # What of readers and permits?
//
// They hold side by side, so their fences are no order. A reader's is as good as a higher
// one until a writer comes in between: [Memory.CheckReader], [CheckPostgresReader],
// [RedisReaderScript] and [MongoReader] compare it with the writers' only, and from then
// on keep out a writer that held before it. For what permits write no fence can be
// compared: one with a much lower fence may still be held. [Holders] asks where the locks
// are whether this one is.
//
// docs/fencing.md has all of it side by side, with what a paused holder is told.
//
// The idea is Martin Kleppmann's: How to do distributed locking, 2016.
package fence
