// Package fence checks fencing tokens where the data is stored. It refuses a write with
// an old fence, whose holder was paused and has lost the lock to another holder.
//
// A lock cannot stop a write that is already on its way. Only the data store can. For
// each resource, it remembers the highest fence that it has accepted, and refuses a lower
// one with a [StaleError]. It accepts the same fence again, because a holder writes more
// than once. [pawl.Lease.Fence] returns the fence. Inside of Do, [pawl.FenceOf] reads it
// from the context.
//
//   - [Memory] is for a service that keeps its data itself.
//   - [CheckPostgres], [CheckMySQL] and [CheckSQLite] run one statement in the caller's
//     own transaction. If the check fails, roll back. If the locks are in the same
//     database, CheckLease of postgreslock, mysqllock and sqlitelock is safer.
//   - [RedisScript] wraps the caller's script, so that it runs only if the fence is good.
//   - [Mongo] returns a filter and an update, to merge into the caller's own.
//   - [UpdateObject] writes to an S3-like store with a conditional put.
//   - [Handler] and [Transport] carry the fence over HTTP.
//   - [Compare] is for a store that this package does not support.
//
// If a holder reads, computes and writes, check its fence before it reads, too. Otherwise
// the store accepts writes of the old holder until the new holder's first write, and the
// new holder computes with outdated data.
//
// # Which fences may be compared?
//
// Only fences of the same name may be compared. One lock guards a resource, and fences of
// two names are unrelated. [pawl.FenceOf] returns the fence of a name, or 0 if ctx
// belongs to no lease on it. Every check refuses 0 with a [*pawl.InvalidError].
//
// # How are readers and permits checked?
//
// Readers hold at the same time, as permits do, so the order of their fences means
// nothing. A reader's fence stays good until a writer with a higher one writes.
// [Memory.CheckReader], [CheckPostgresReader], [RedisReaderScript] and [MongoReader]
// compare a reader's fence only with fences of writers. After such a check the resource
// refuses each writer with a lower fence, because that writer must have lost the lock
// before the reader could get it. A caller that reads more than once checks before its
// first read and after its last. If both checks succeed, no writer came in between, and
// all reads are consistent.
//
// Fences of permits cannot be compared: a permit with a much lower fence may still be
// held. [Holders] asks the backend whether a permit is held.
//
// docs/fencing.md compares these checks, with the errors that a paused holder gets.
//
// The idea is Martin Kleppmann's: How to do distributed locking, 2016.
package fence
