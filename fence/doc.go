// Package fence is the side that checks: it refuses a write that carries an old fencing
// token, because its holder was paused and has lost the lock to another.
//
// A lock cannot stop a write that is already on its way; only what is written to can. It
// remembers, per resource, the highest fence that it has accepted, and refuses a lower
// one with a [StaleError]. A fence is accepted again and again, for its holder writes
// more than once. The number is in [pawl.Lease.Fence] and, inside of Do, in the context:
// [pawl.FenceFromContext].
//
//   - [Memory] is for a service that keeps its data itself.
//   - [CheckPostgres], [CheckMySQL] and [CheckSQLite] are one statement in the caller's
//     own transaction, which must not commit if they fail. Where the locks are in the
//     same database, Guard of postgreslock, mysqllock and sqlitelock is safer yet.
//   - [RedisScript] makes a script of a script: the write happens only if the fence is
//     good.
//   - [Mongo] is merged into the caller's own update.
//   - [Handler] and [Transport] carry the fence over HTTP.
//
// Who reads, computes and writes has its fence checked before it reads, too: else an old
// holder whose write comes before the new one's first is let in, and what the new one
// read before that is not true any more.
//
// # Which fences may be compared?
//
// Those of one name. A resource is guarded by one lock; fences of two names have nothing
// to do with each other.
//
// # What of readers and permits?
//
// Readers hold side by side, so a lower fence of a reader is as good as a higher one, and
// only a writer in between makes it stale: [Memory.CheckReader]. What permits of a
// semaphore write cannot be told from their fences at all: one with a much lower fence
// may still be held. Ask the backend right before the write ([pawl.Lease.Confirm]), or
// give each place a mutex on a name of its own.
//
// The idea is Martin Kleppmann's: How to do distributed locking, 2016.
package fence
