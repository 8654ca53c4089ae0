// Package pawl provides distributed locks on a database you already run: only one worker
// at a time, on any number of machines. Most programs need only [Client.Mutex] and
// [Mutex.Do]:
//
//	import _ "github.com/pawl-go/pawl/sqlitelock" // for the URL
//
//	locks, err := pawl.Open(ctx, "sqlite:/var/lib/app/locks.db", nil)
//	if err != nil {
//		return err
//	}
//	defer locks.Close()
//
//	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error { ... })
//
// # What do I use for ...?
//
//   - Waiting until the other workers are done: [Mutex.Do].
//   - Skipping a run that another worker is already doing: [Mutex.TryDo].
//   - One run a night, on several replicas: [Once].
//   - One leader among several instances: [Election].
//   - Readers side by side, and a writer alone: [RWMutex].
//   - At most n workers: [Semaphore].
//   - Several names at once: [All].
//   - A limit to the time for which the lock is held: [WithMaxHold].
//   - Names of one tenant, or of one environment: [Client.Namespace].
//   - A transaction that must not commit after the loss of its lease: CheckLease of
//     postgreslock, mysqllock or sqlitelock.
//   - A lease that outlives the process: [Lease.Detach] and [Client.Attach].
//
// # Which backends are there?
//
// Each backend is a package below this one. A program imports it for its URLs or its New:
// memlock for one process, and for tests; sqlitelock for the processes of one host, in a
// file; one package for each database, such as redislock and postgreslock; redlock for a
// majority of several Redis servers, and quorumlock for a majority of any backends.
// README.md lists all.
//
// All backends guarantee what this page says. docs/internals/guarantees.md compares them
// where they differ: whose clock decides, what happens when a server is killed.
//
// # What does a lock give me?
//
// A [Lease]: the backend's guarantee that no other client holds the name until the holder
// releases the lease or loses it. The client renews the lease. If it cannot, it closes
// [Lease.Done] before the backend can grant the name to another client. [Mutex],
// [RWMutex] and [Semaphore] share one name space.
//
// Processes take turns, first come, first served. In its turn a process serves its own
// waiters: see HandoffWindow in [Options].
//
// # What does a lock not give me?
//
// A lock cannot stop a write that is on its way, or one that a paused process makes when
// it wakes up. The resource must refuse such a write:
//
//   - If the data is in the same SQL database as the locks, call CheckLease of
//     postgreslock, mysqllock or sqlitelock in the transaction, right before Commit. It
//     returns [ErrStale] if the lease is over. If it returns nil, no other client gets
//     the name before the transaction ends.
//   - If the data is elsewhere, send [Lease.Fence] along with each write, and let the
//     resource refuse a smaller one. The fence is a number that rises with every grant.
//     Its comment says which writes to refuse if several holders work side by side.
//     Package fence has such checks for some databases.
//
// # What does ctx do?
//
// ctx bounds the call. The lease lives on after ctx is over, until Release. [Mutex.Do]
// ends the context of its function with ctx, or with the lease if that ends first.
//
// # How do I stop?
//
// Call [Client.Shutdown] on SIGTERM: it lets holders finish, for as long as its ctx
// allows. Defer [Client.Close]: it ends the leases that are left.
//
// # Which errors are there?
//
// Branch on these with errors.Is:
//
//   - [ErrHeld]: others hold the lock or wait for it.
//   - [ErrLost]: the lease ended without a release.
//   - [ErrUnavailable]: the backend failed, or did not answer.
//   - [ErrInvalid]: bad input, refused before anything was sent.
//   - [ErrClosed]: the client is closed.
//   - [ErrReleased], [ErrDetached]: the lease was released, or detached. Only the
//     lease's own methods and its context say so.
//   - [ErrValueNotBelow]: the name keeps a value that is not smaller than the value of
//     WithValueBelow.
//   - [ErrNoSuchLease]: Break found no lease with that fence.
//   - [ErrStale]: CheckLease of an SQL backend found that the lease has ended.
//
// and on the errors of ctx. For details use errors.As with [HeldError], [LostError],
// [BackendError], [InvalidError], [ValueNotBelowError] and [CloseError].
//
// # What happens when my process dies?
//
// Its leases expire after their TTL, 30 s by default. The next claim in the queue then
// gets the name. [WithTTL] sets a shorter TTL.
package pawl
