// Package uses is tests only: what people do with locks (leaders, schedules, many at
// once, leases that outlive a process), on memory, SQLite, Redis and PostgreSQL. The
// tests of the root say the same in virtual time and with every fault; here are real
// servers, real processes, and time that runs.
//
// Read it in this order:
//
//   - backends_kit_test.go: the backends, and the clients that a test has of them
//   - election_test.go, once_test.go, all_test.go, ...: a part of Pawl each
//   - mortal_kit_test.go: clients that die, and whose requests are counted
//   - ticks_test.go: a schedule of twenty instances whose clocks differ
//   - killed_test.go, killed_bench_test.go: processes that are killed
//   - fence_unix_test.go: one that stands still, and goes on when it has lost its lock
//
// Nothing here looks at how long something takes, for the machine may be slow: a lease
// that shall expire is that of a holder that is gone, and all others last.
package uses
