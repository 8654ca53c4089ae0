package driver

// Lease has the facts about a lease that CheckLease of postgreslock, mysqllock and
// sqlitelock needs to check it in a transaction. A *pawl.Lease is one: the result of
// Lock, or of pawl.LeaseOf(ctx, name) inside Do, also of pawl.All. Name and fence come
// from one value, so a caller cannot mix two leases.
//
// A check takes its leases in any order. A lease that is passed twice counts once.
// Several leases on one name are each checked. The error for a nil lease (LeaseOf found
// none), no lease at all, or a lease of another backend or of other tables matches
// ErrInvalid. For a lease of another database the check finds no row, and returns
// ErrStale.
//
// Two more methods are optional, and a *pawl.Lease has both. Err() error returns nil
// while its client trusts the lease. Otherwise the check refuses the lease, because
// goroutines of one client pass a lease on without a request to the backend. Backend()
// string returns the backend that granted it, as Properties.Location.
type Lease interface {
	StoredName() string // as the backend stores it, with its namespace
	Fence() uint64
}
