// Package memlock keeps locks in the memory of one process: for programs of a single
// process, for tests, and as the reference with which Pawl's tests compare every other
// backend.
//
//	locks, err := pawl.New(memlock.New(nil), nil)
//
// Clients that exclude each other share one [Memory], and each has a driver of its own.
// Locks and fences are lost with the Memory.
//
// # URLs
//
//   - "mem:" is a Memory of its own, which no other client can open.
//   - "mem:NAME" is shared by all callers in this process that open that name,
//     until the process ends.
//
// There are no parameters.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser and driver.AllAcquirer; [driver.As] finds them.
package memlock
