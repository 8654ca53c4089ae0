// Package localqueue holds the waiters of one process: a queue for each name, and the
// hand-off of a lease from one waiter to the next.
//
// The waiters of a name are in the order of their arrival. Of exclusive waiters only the
// head is also in the backend's queue. So a process counts as one waiter there, and a
// thousand goroutines cost the backend no more than one.
//
// Readers can hold at the same time, and so can permits within the limit. Their claims do
// not wait for the answers to claims ahead of them, so several may join the backend's
// queue. This ends when the backend answers one of the claims with "held". After that
// answer, claims for permits are sent one by one, so that they are served in order. Each
// claim that is granted at once doubles the number that may be sent together.
//
// An exclusive hold that was granted with several fences may be passed on. If its lease
// is released within the hand-off window after the grant, the next waiter of this process
// gets the hold with the next fence, without a request. Meanwhile the head is not in the
// backend's queue. It joins that queue when the hold cannot be passed to it any more,
// because the window is over or the last fence is in use. It joins at the end like any
// other claim, so another process waits no longer than the hand-off window and one lease.
//
// A process that had to wait for other processes passes the hold only to as many waiters
// as it had at the grant; later waiters wait for its next grant. If no other process is
// known to wait, the hold may be passed to all waiters, again and again.
//
// The cost of an operation does not depend on the length of the queue, with two
// exceptions: finding a waiter's position costs its logarithm on average, and
// CountPassable visits the waiters that it counts. The package reads no clock.
package localqueue
