// Package stamped is for stores whose server cannot compare a time when it writes, but
// stamps each value with its clock: the timestamp of a message, or a field that is set to
// the current date.
//
// Such a store keeps an [Envelope]: the window of the swap, the new value, and the value
// that it replaced. The server stamps the envelope. If the stamp is outside of the
// window, the swap is void, and the name still has the replaced value for each reader. So
// the effect is as if the server had compared its clock before it stored: a swap that
// arrives late, or was computed from a wrong time, changes only the version of the name.
//
// The writer must also find out whether its swap counts. An acknowledgement is not
// enough, because the server's clock may have been set, or another machine may have
// become the leader, since the writer last learned the time. So the writer reads the
// stamp of its envelope, in the answer to the write or with one more request, before it
// reports success. If another swap has replaced it by then, the envelope of that swap
// lists the void swaps before it, see [Envelope.Counted].
//
// # Assumptions about clocks
//
// Every swap that counts has a stamp within its window. So all swaps that count are in
// order on the stamping clock, and only that clock decides what has expired. If it is set
// back, or the next leader's clock is behind, swaps are void until their writers have
// learned the new time, and leases last longer by the difference. If it jumps ahead, or
// the next leader's clock is ahead, leases end sooner by about the difference, as on each
// backend whose server's clock decides. Fences still rise.
package stamped
