// Package locktable is the lock algorithm of Pawl as a pure state machine, and a backend
// over any table that can run it.
//
//   - entry.go has the type [Entry], the state of a name. The methods in steps.go,
//     grant.go and value.go are the algorithm: claims, renewals, releases and breaks;
//     grants and their fences; and the value of a name.
//   - queue.go is the queue that a step sees: all of it, or the first waiters and the
//     claim's own place.
//   - table.go is a [driver.Driver] over a [Table], which changes one entry atomically.
//   - codec.go is the stored form of an entry, for tables of bytes.
//   - rows.go is for tables that store each waiter of a long queue in its own row, so
//     that no step costs the length of the queue.
//
// memlock is the smallest Table. sqlitelock is a Table over SQL, with long queues in
// rows.
//
// This package, and those below it, stay v0 when the root package becomes v1: see package
// driver. The stored form has a version of its own, and docs/upgrade.md says how
// to upgrade when it changes.
package locktable
