package driver

// Lease has the facts about a lease that CheckLease of postgreslock, mysqllock and
// sqlitelock needs to check it in a transaction. A *pawl.Lease is one. Name and fence
// come from one value, so a caller cannot mix two leases.
//
// Two more methods are optional, and a *pawl.Lease has both. Err() error returns nil
// while its client trusts the lease; otherwise the check refuses the lease. Backend()
// string returns the backend that granted it, as Properties.Location; the check refuses a
// lease of another backend.
type Lease interface {
	StoredName() string // as the backend stores it, with its namespace
	Fence() uint64
}
