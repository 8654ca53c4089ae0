// Package memlock keeps locks in the memory of one process: for programs that have no
// other process to exclude, for tests, and as the oracle with which every other backend
// is compared.
//
//	locks, err := pawl.New(memlock.New(nil), nil)
//
// Clients that exclude each other share one [Memory], and each has a driver of its own.
// Nothing is kept beyond the life of the Memory, fences included.
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
// Beside the methods of driver.Driver it has those of driver.Signaler, driver.Watcher,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.AllAcquirer;
// [driver.As] finds them.
package memlock
