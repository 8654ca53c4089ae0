// Package locktable is the lock algorithm of Pawl as a pure state machine, and a backend over any table that
// can run it.
//
//   - entry.go is the algorithm: [Entry], a value, and what claims, renewals, releases and breaks do to it.
//   - table.go is a [driver.Driver] over a [Table]: what can change one entry atomically.
//   - codec.go is how an entry is stored, for tables of bytes.
//
// memlock is the smallest Table; sqlitelock is one over SQL.
package locktable
