// Package pawl is a distributed lock: only one worker at a time, on any number of machines, over the database
// that is already there.
//
//	locks, err := pawl.Open(ctx, "sqlite:/var/lib/app/locks.db", nil)
//	defer locks.Close(context.Background())
//
//	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error { ... })
//
// # What does a lock give me?
//
// A [Lease]: the word of the backend that nobody else holds the name, until you release it or it is lost. The
// client renews it for you. If that fails, Done is closed before the backend can grant the name to another.
// There are three kinds, in one name space: [Mutex], [RWMutex] and [Semaphore]. All are fair: first come,
// first served, among all processes.
//
// # What does a lock not give me?
//
// It cannot stop a write that is on its way, or that a paused process makes when it wakes up. What guards
// against those is the [Lease.Fence], a number that rises with every grant: send it along, and let the
// resource refuse an older one. The doc of Fence says which, for locks that several hold side by side.
//
// # What does ctx do?
//
// It bounds the call. The lease goes on after ctx is over, until Release; [Mutex.Do] runs its function under
// both, ctx and the lease.
//
// # How do I stop?
//
// [Client.Shutdown] lets those who hold a lock finish, for as long as its ctx allows; [Client.Close] takes it away.
//
// # Which errors are there?
//
// ErrHeld (others hold it), ErrLost (the lease ended without a release), ErrUnavailable (the backend cannot be
// asked: then nothing is granted), ErrInvalid (refused before anything was sent), ErrClosed, ErrNotHeld (there is
// nothing to break), ErrReleased (the end of a lease that was released), and ctx's own. Branch on them with
// errors.Is; [HeldError], [LostError], [InvalidError] and [CloseError] have the details.
//
// # What happens when my process dies?
//
// Its leases expire after their TTL, 30 s by default, and the next in the queue gets the name. Set a shorter
// one where that is too long: [WithTTL].
package pawl
