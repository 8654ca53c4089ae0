// Package stamped is for stores that cannot compare a time when they write, but stamp all
// that they store by the server's clock: the timestamp of a message, a field that is set
// to the current date.
//
// Such a store keeps an [Envelope]: the window of the swap, the new value, and the value
// that it replaced. The server stamps it. If the stamp is outside of the window, the swap
// is void, and a reader takes the replaced value for the value of the name. So the effect
// is as if the server had compared its clock before it stored: a swap that arrives late,
// or that was computed from a wrong time of the server, changes nothing except the
// version of the name.
//
// The writer, too, must know whether its swap counts. An acknowledgement is not enough,
// because the server's clock may have been set, or another machine may have become the
// leader, since the writer last learned the time. So a writer reads the stamp of what it
// wrote, in the answer to the write or with one more request, before it reports success.
// If another swap has replaced it by then, the envelope of that swap lists which swaps
// before it were void, see [Envelope.Counted].
//
// # Assumptions about clocks
//
// Every swap that counts has its stamp in the window that it was computed for. So all
// swaps that count are in order on the stamping clock, and only that clock decides what
// has expired. If it is set back, or the next leader's clock is behind, swaps are void
// until their writers have learned the new time, and leases last longer by the
// difference. If it jumps ahead, or the next leader's clock is ahead, leases end sooner
// by the difference, less the time by which windows are wider than a request takes. A
// jump ahead does so on each backend whose server's clock decides. Fences still rise.
package stamped
