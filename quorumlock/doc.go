// Package quorumlock makes one driver out of several that have nothing in common: Redlock
// with fencing tokens, over any mix of backends. A lease is held by a majority of all
// nodes, so it outlives the loss of any minority of them. Most programs need only package
// redlock, which opens a quorum of Redis servers by URL; with other nodes, [New] is all
// that is needed:
//
//	nodes := []driver.Driver{redisA, redisB, redisC}
//	quorum, err := quorumlock.New(nodes, nil)
//	locks, err := pawl.New(quorum, nil)
//
// [Options] are for tests and for slow networks: a clock, and how long the slowest node
// is waited for. What follows "What it promises" is the argument, for those who want to
// check it.
//
// # When to use it
//
// When a backend that one machine runs is not enough, and none that replicates by
// consensus (etcd) is there. One PostgreSQL with a synchronous standby is simpler. The
// nodes have to be independent: three masters, not one and its replicas.
//
// # What it promises
//
// With N nodes and M = N/2+1, as long as no more than N-M of them have failed in any way
// (a node that lacks a lease counts as failed for that lease, until the lease is
// repaired):
//
//   - One holder: two claims that exclude each other are never both granted. Each has M
//     nodes, so they have one in common, and that one grants only one of them.
//   - Fences rise: see below.
//   - A claim that cannot reach M nodes is not granted (ErrUnavailable), and what it has
//     is given back on all of them, as soon as they can be reached.
//   - Renew and Release count M of all N nodes, not of those that granted.
//
// # Why fences rise
//
// A fence F of a claim is shown only when M nodes have given exactly F to this claim. A
// node gives no number twice, and each number that it gives is greater than all before.
// That is all that is needed:
//
//   - Two claims that are shown a fence have a node in common that gave both of them
//     theirs. So fences are distinct.
//   - If the first was shown before the second was sent, that node gave the second its
//     fence later. So it is greater.
//
// Nothing in it depends on clocks. The nodes do not grant the same number by themselves,
// for it is their time in microseconds. So a claim goes out with a wish
// ([driver.Claim].MinFence): our own clock, and a lead that is half of [driver.MaxLead]
// at first, and measured whenever they disagree, so that the wish is the highest number
// there is. Then all of them grant it, and one round trip is enough. If they disagree,
// the highest of their fences is written back to the others ([driver.FenceRaiser]), which
// takes a second round trip, as it does in the first grant of a client whose clock
// differs from that of a node by more than the lead, and always where clocks differ, or
// requests take, more than MaxLead. The wish can bring a fence no further than MaxLead
// ahead of a node's clock, and writing back copies only what some node gave; so the
// highest fence of a name stays within MaxLead of the fastest of the clocks, or is one
// more than the last. (Claims that are granted beside each other at the same moment may
// chase each other's numbers, in steps of up to 4 ms.)
//
// When a name is passed on along the queue there is no wish: each node gives its own
// time. The client of the waiter hears of it from the nodes, makes them agree, and only
// then says "granted": one round trip after the signals.
//
// # One fence for one grant
//
// A claim that is asked for again is told the fence that was shown, because a majority of
// the nodes still has exactly this number. There is one case in which that cannot be
// seen: a node has granted the claim with a higher number, for its clock is ahead and its
// answer came too late to be agreed on, or it was repaired, and now a node of the
// majority does not answer. Two that answer could be what is left of either number. Then
// the higher one is agreed on. It is above what was shown, never below, and nobody
// else's, so the holder may go on with it.
//
// Within one client the nodes are made to agree by one at a time for each claim, whether
// it was a signal or an attempt that began it. Otherwise two that have heard different
// nodes could agree on two numbers.
//
// A grant that was passed on and has not been told to its claimant has no fence yet.
// [Driver.Inspect] shows the highest that a node gave it, which is the one it will get if
// all nodes can be reached and nobody comes beside it.
//
// # Nodes that lose their data
//
// A node that comes back empty has forgotten its votes, and for how long names are closed
// or kept, and would vote again: two may hold the name. It must stay away for the longest
// of all TTLs, lock-delays, minimum holds and delays of a break that are in use; and
// until its clock has passed the highest fence of the others, that is for MaxLead and the
// difference of their clocks. Then it breaks neither promise. If it comes back at once,
// two may hold; fences still rise, if all clocks agree and it was away for MaxLead. A
// node that writes to disk before it answers (Redis with appendfsync always, PostgreSQL)
// need not stay away.
//
// # Votes that are lost
//
// A node that is silent keeps its votes, and does no harm. A node that forgets one gives
// it to the next: because its clock was set forward, somebody deleted a key or emptied
// it, or it came back too early. So does one that a grant has never reached. Of the nodes
// that a lease has, it can lose so many that a majority is left; with the next, another
// claim has a majority, too, before the holder hears that it has none. Fences rise all
// the same.
//
// So a lease is repaired: when a majority has renewed it, the nodes that have not got it
// are asked for it again (repair.go). It is safe from the loss of N-M votes when all
// nodes have it, and again when its next renewal has gone through, a third of its TTL
// later; or when a claim that has a vote too many there has given it back. A node on
// which others wait in front of it gives it the vote when it is its turn, and a lease
// without a renewal (a minimum hold after its release) is not repaired. Not safe is a
// lease that exactly M nodes have, and the moment in which a renewal has been answered by
// the node that then forgets it, and by one other only.
//
// docs/models has these arguments as models that are checked by machine, and what goes
// wrong without each part of them.
//
// # The value of a name
//
// A node's grant is a vote, and no grant yet. Claims that split the vote would each leave
// their value on the nodes that they had; if all of them want the same one, to run a job
// once, each would be kept out by the others' for good. So a claim goes to the nodes with
// its condition ([driver.Claim].Above), which each of them looks at, and without its
// value. When a majority has granted it, with one fence, the value is written under that
// fence ([driver.FenceRaiser]), once for each lease; and only when a majority has it the
// claim is granted. That is one round trip more for claims that write.
//
//   - Nobody is granted a value that is not above one that was granted: a majority has
//     that, any two majorities meet, and a node's value is replaced by whoever holds the
//     name only.
//   - A claim is refused for the value (ErrValue) if more than N-M nodes say so, for then
//     no majority is left that could grant it. If fewer do it is granted by the others,
//     or fails as ever because of these, and is worth another try.
//   - What a claim that failed halfway has written on a minority keeps nobody out. On a
//     majority it counts as granted, although its claimant was not told, as on one server
//     whose answer is lost. So may what several such claims have written on nodes of
//     their own.
//
// A value is on a majority as a lease is, and is brought to the other nodes when they are
// repaired. A node that comes back empty has none: what is above for it may not have been
// above for the others.
//
// Claims that share the name (readers, permits) and come at the same moment are compared
// before either has written: both may be granted the same value. A waiter to which the
// name was passed on writes when it is told. [Driver.Inspect] shows the value of the
// highest fence that a majority may have; if its holder has written several, and nodes
// are silent, it may be an earlier one of those.
//
// # How long a lease lasts
//
// Grant.TTL is what M nodes keep: the shortest of the M longest. Nothing is subtracted
// for drift: the client counts its term from the sending of the claim and leaves a margin
// of a tenth, which is there because two clocks never run at the same speed. One node's
// clock decides no more than one vote. What a clock shows does not matter; one that jumps
// forward loses the votes of its node, see above.
//
// A client that is told "granted" by a signal trusts it for the QueueTTL from the sending
// of its last attempt that was answered "held". A node keeps what it passed on for the
// QueueTTL from the last attempt that came to it, which may be an earlier one. So a vote
// that was passed on counts only where the node has answered the latest attempt; and what
// was said before an attempt is old when that is answered "held", whatever has become of
// it ([driver.HeldError].Fence). Then the client asks again, and has a full TTL on a
// majority, or has not got the name.
//
// # How fair it is
//
// Each node has a queue of its own, in which a claim stands as if it had come when its
// client asked, by that client's clock: so all queues have one order, though claims come
// to the nodes in different ones. Claims that come to a free name at once may split the
// vote, and so do clocks that are further off than half of [driver.MaxLead]; then the one
// whose client asked first gets it (split.go). A turn costs the same, however many wait.
// Everybody gets it in the end: a claim is overtaken only by those that stand before it
// in some queue, and once for each older claim to which it gives way. A client that dies
// while it holds a vote costs the others its QueueTTL, or its TTL if it had been granted.
// Tries that come at once may all fail. An even number of nodes splits more often than an
// odd one.
//
// # Forced claims
//
// Two claims that take a name by force at once may each be granted by every node, one
// after the other. So a forced claim takes a second round trip, to see that a majority
// had it all at once, and is made again if it was not. Of several that come at once each
// is granted it at an instant of its own, and all but the last have lost it when they
// hear of that, or a moment later.
//
// # Semaphores
//
// Two majorities have a node in common, but four permits of a semaphore of three have
// not: three nodes with three places each have room for four claims on two nodes each. So
// permits are counted a second time, see recount. It takes one more round trip, and a few
// where votes are split. Mutexes, readers and writers do not need it. A permit that is
// asked for again is counted again, unless a majority has kept it since; its fence does
// not tell, for it may have lost its majority and have found another.
//
// A claim that was passed on and has not been told has no fence, and comes after the
// claims that get one before it. If these leave no room within its limit, so that theirs
// is larger, it is refused, and asks again from the end of the queue. In a semaphore
// whose limit is the same for all, and for mutexes, readers and writers, that cannot
// happen.
//
// # Requests
//
// Each operation goes to all nodes at once, and answers when a majority has decided it;
// it waits a moment for the others, so that they do not fall behind, but not for one that
// has been behind before. What is still under way goes on in the background, until the
// deadline of the call's ctx, or Close. Requests of one token come to a node in the order
// of the calls.
//
// A claim that queues needs its nodes to answer once within the time of a call. What may
// follow, for the nodes to agree on a fence and for permits to be counted, goes on when
// the call has ended, and is signalled, or found done by the next call.
//
// Each node keeps the end of an Acquire ([driver.End]). What is taken back on a node, by
// Release or by the quorum itself, is released there at once; and once more after the
// end, if an Acquire was not answered. A token may be claimed again on a node only when
// no release of it can arrive there any more. What is owed to nodes in this way is one
// list for the driver, of 65 536 claims at most: beyond that, what a node may hold for
// nobody ends with its TTL.
//
// A waiter's place on a node that has missed the grant becomes a vote when the name is
// passed on there. Beside that, nothing is sent for a lease but its renewals, unless it
// has to be repaired.
//
// Owners carry a tag on the nodes, in front of the client's id, that makes a claim known
// on all of them; it shows when somebody looks at a node directly.
package quorumlock
