// Package localqueue holds the waiters of one process: a queue for each name, and the
// hand-off of a lease from one waiter to the next.
//
// The waiters of a name are in the order of their coming, and only the head is in the
// backend's queue, too. So a process counts as one waiter there, and a thousand
// goroutines cost the backend no more than one. As long as no claim of the queue was
// answered "held", claims that can hold side by side (readers, and as many permits as
// there are) do not wait for the answers of those ahead. After a claim for permits was
// answered "held", the next ones ask one by one, so that they are served in order; each
// that is granted at once lets twice as many ask.
//
// An exclusive hold that was granted with several fences may be passed on. When its lease
// is released within the hand-off time of the grant, the next waiter here takes the hold
// over with the next fence, and no request is sent. Meanwhile the head stays out of the
// backend's queue. It joins that queue when the hold cannot be passed to it any more,
// because the time is over or the last fence is in use. Then the process is at the end of
// the queue like any other, and another process waits no longer than the hand-off time
// and one lease.
//
// A process that had to wait for other processes passes the hold only to as many waiters
// as were there at the grant; later ones wait for its next turn. While a process is
// alone, the hold may go round among all waiters, as no other process is known to wait.
//
// The cost of an operation does not depend on the length of the queue, except that
// finding a waiter's place costs its logarithm. Times are parameters; nothing here reads
// a clock.
package localqueue
