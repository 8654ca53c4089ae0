// Package locktable is the lock algorithm of Pawl as a pure state machine, and a backend
// over any table that can run it.
//
//   - entry.go is the algorithm: [Entry], a value, and what claims, renewals, releases
//     and breaks do to it.
//   - queue.go is the queue as the algorithm sees it: all of it, or the first and the
//     claim's own place.
//   - table.go is a [driver.Driver] over a [Table]: what can change one entry atomically.
//   - codec.go is how an entry is stored, for tables of bytes.
//   - rows.go is for tables that store the waiters of a long queue by themselves, so that
//     no step costs its length.
//
// memlock is the smallest Table; sqlitelock is one over SQL, with long queues in rows of
// their own.
//
// This package, and those below it, stay v0 when the root package becomes v1: see package
// driver. What is stored has a version of its own, and docs/operations-upgrade.md says
// what an upgrade may read.
package locktable
