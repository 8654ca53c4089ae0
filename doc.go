// Package pawl provides distributed locks on a database you already run: only one worker
// at a time, on any number of machines. Most programs need only [Client.Mutex] and
// [Mutex.Do]:
//
//	locks, err := pawl.Open(ctx, "sqlite:/var/lib/app/locks.db", nil)
//	defer locks.Close()
//
//	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error { ... })
//
// Use [Mutex.TryDo] to skip a run that another worker is already doing, [Client.RWMutex]
// for readers beside each other, and [Client.Semaphore] for at most n workers.
//
// # Which backends are there?
//
// Each is a package below this one, which a program imports for its URLs or its New:
// memlock for one process, and tests; sqlitelock for the processes of one host, in a
// file; one for each database, such as redislock and postgreslock; redlock for a majority
// of several Redis servers, and quorumlock for one of any backends. README.md has all.
//
// All guarantee what stands here. Where they differ (whose clock decides, what happens
// when a server is killed), docs/backends.md has them side by side.
//
// # What does a lock give me?
//
// A [Lease]: the backend's guarantee that nobody else holds the name until you release it
// or it is lost. The client renews it for you. If that fails, [Lease.Done] is closed
// before the backend can grant the name to another. The three kinds of locks, [Mutex],
// [RWMutex] and [Semaphore], share one name space.
//
// Processes take turns, first come, first served; in its turn a process serves its own
// waiters in their order, for LocalHandoff (10 ms) at most, and only those that waited
// with it if it had to wait. See [Options].
//
// # What does a lock not give me?
//
// It cannot stop a write that is on its way, or one that a paused process makes when it
// wakes up. [Lease.Fence] guards against those. It is a number that rises with every
// grant: send it along with each write, and let the resource refuse an older one. The doc
// of Fence says which ones to refuse for locks that several hold side by side.
//
// # What does ctx do?
//
// It bounds the call. The lease lives on after ctx is over, until Release. [Mutex.Do]
// runs its function under both: ctx and the lease.
//
// # How do I stop?
//
// [Client.Shutdown] lets holders finish, for as long as its ctx allows: call it on
// SIGTERM. [Client.Close] takes their leases away: defer it.
//
// # Which errors are there?
//
// Branch on these with errors.Is:
//
//   - [ErrHeld]: others hold the lock or wait for it.
//   - [ErrLost]: the lease ended without a release.
//   - [ErrUnavailable]: the backend cannot be asked, so nothing is granted.
//   - [ErrInvalid]: bad input, refused before anything was sent.
//   - [ErrClosed]: the client is closed.
//   - [ErrReleased], [ErrDetached]: the lease was released, or detached. Only Lease.Err
//     and its context say so.
//   - [ErrValue]: the name keeps a value that is not smaller than that of [WithAbove].
//   - [ErrNotHeld]: Break found no lease with that fence.
//   - [ErrStale]: CheckLease of an SQL backend found that the lease has ended.
//
// and on ctx's own. For details use errors.As with [HeldError], [LostError],
// [BackendError], [InvalidError] and [CloseError].
//
// # What happens when my process dies?
//
// Its leases expire after their TTL, 30 s by default, and the next claim in the queue
// gets the name. Set a shorter one with [WithTTL] where that is too long.
package pawl
