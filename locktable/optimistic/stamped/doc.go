// Package stamped is for stores that cannot say "only before this time", but put the time
// on all that they store, by the clock of the server: the timestamp of a message, a field
// that is set to the current date.
//
// What such a store keeps is an [Envelope]: the window in which the swap was to take
// effect, the new value, and the value that it replaced. The server stamps it. If the
// stamp is outside of the window, the swap is void, and whoever reads it takes the
// replaced value for the value of the name. So it is as if the server had looked at its
// clock before it stored: a swap that arrives late, or that was computed from a wrong
// idea of the server's time, changes nothing but the version of the name.
//
// All depends on that the writer, too, knows what became of its swap. An acknowledgement
// is not enough, for the clock of the server may have been set, or another machine be the
// leader, since its time was last heard. So a writer looks at the stamp of what it
// wrote, in the answer to the write or in one more request, before it tells anybody. If
// another swap has replaced it by then, that one knows: it says which of those before it
// were void, see [Envelope.Counted].
//
// # What is assumed of clocks
//
// Every swap that counts was computed for a window in which its stamp is. So all that
// counts is in order on the clock that stamps, and it is that clock alone that decides
// what has expired. If it is set back, or the next leader's is behind, swaps are void
// until their writers have learned the new time, and leases last longer by the
// difference. If it jumps ahead, or the next leader's is ahead, leases end sooner by the
// difference, less what the windows are wider than a request takes; that is so for
// each backend whose server's clock decides. Fences rise all the same.
package stamped
