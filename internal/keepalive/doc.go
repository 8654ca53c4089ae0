// Package keepalive decides when the leases of a client are renewed and given back: which
// is due next, which go in one request, and how many requests may be under way at once.
// It sends nothing and reads no clock; the root package does, and package returner.
//
// Renewals are the leases that are held, ordered by when they are due. Dispatch has the
// leases that are due until they are sent, so that one that hangs does not delay the
// others. Returns are the leases to give back in the background.
package keepalive
