// Package localqueue holds the waiters of one process: a queue for each name, and the
// hand-off of a lease from one of them to the next.
//
// The waiters of a name stand in the order of their coming, and only the head stands in
// the backend's queue, too. So a process counts there as one, however many goroutines
// wait in it, and a thousand of them cost the backend no more than one. While nobody has
// been told "held", claims that can stand beside each other (readers, and as many permits
// as there are) do not wait for the answer of those ahead: only a queue that stands is
// kept short.
//
// An exclusive hold that was granted with several fences may be passed on: when its
// lease is released within the hand-off time of the grant, the next waiter here takes it
// over with the next fence, and no request is made. Meanwhile the head stays out of the
// backend's queue. It goes there as soon as the hold cannot be passed to it any more,
// because the time is over or the last fence is in use: then the process stands at the
// end of the queue like everybody else, and another one waits no longer than the
// hand-off time and one lease. A process that had to wait for others passes the hold
// only to as many as waited with it: those who come back meanwhile are for its next
// turn. While it is alone the hold goes round among all who come, because nothing is
// known of others then.
//
// All that is done to a queue costs the same however long it is; a waiter's place costs
// the logarithm. Time goes in as a value, and nothing here reads a clock.
package localqueue
