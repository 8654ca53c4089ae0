// Package keepalive decides when the leases of a client are renewed and given back: what
// is due next, what goes in one request, and how much may be under way at once. It sends
// nothing and reads no clock; the root package does.
//
// Renewals are the leases that are held, by when something is due. Dispatch has those
// that are due, until they are sent, so that nothing that hangs holds up the others.
// Returns are what is to be given back in the background.
package keepalive
