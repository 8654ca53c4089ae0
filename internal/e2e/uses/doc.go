// Package uses contains only tests: what happens to a leader, a task and a lease when
// their process is killed or stands still, on SQLite, Redis and PostgreSQL. The tests of
// the root check the same in virtual time and with every fault. These tests use real
// servers, real processes and real time.
//
// Read it in this order:
//
//   - backends_kit_test.go: the backends, and the clients that a test has of them
//   - killed_test.go, killed_bench_test.go: processes that are killed
//   - paused_unix_test.go: a process that is paused, and continues after it lost its lock
//
// No test checks how long something takes, because the machine may be slow. Only the
// leases of dead holders expire; all others last longer than the test.
package uses
