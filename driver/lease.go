package driver

// Lease is what a check of leases in a transaction wants to know of one: postgreslock,
// mysqllock and sqlitelock have such a check, CheckLease. A *pawl.Lease is one. Name and
// fence come from the same value, so those of two leases cannot be mixed.
type Lease interface {
	StoredName() string // as the backend has it, with its namespace
	Fence() uint64
}
