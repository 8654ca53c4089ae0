// Package keepalive decides when the leases of a client are renewed: which lease is due
// next, which leases share a request, and how many requests may be under way at once. It
// sends nothing and reads no clock; the root package does.
//
// Renewals has the held leases, ordered by the times at which they are due. Dispatch has
// the leases that are due, until they are sent, so that one that hangs does not delay the
// others.
package keepalive
