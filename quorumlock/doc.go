// Package quorumlock makes one driver out of several independent ones: Redlock with
// fencing tokens, over any mix of backends. A majority of all nodes holds each lease, so
// a lease survives the loss of any minority of the nodes. Most programs need only package
// redlock, which opens a quorum of Redis servers by URL. For other nodes, use [New]:
//
//	nodes := []driver.Driver{redisA, redisB, redisC}
//	quorum, err := quorumlock.New(nodes, nil)
//	locks, err := pawl.New(quorum, nil)
//
// [Options] are for tests and for slow networks.
//
// # When to use it
//
// Use a quorum if locks must survive the loss of a machine, and you run no backend that
// replicates by consensus, such as etcd. One PostgreSQL with a synchronous standby is
// simpler. The nodes have to be independent: three masters, not one with replicas.
//
// # What it promises
//
// There are N nodes, and M = N/2+1. The following holds while no more than N-M nodes have
// failed in any way. A node that lacks a lease, or has it with a lower fence than its
// holder, counts as failed for that lease, until the lease is repaired.
//
//   - One holder: two claims that exclude each other are never both granted.
//   - Fences rise, whatever the clocks of the nodes show.
//   - A claim that cannot reach M nodes is not granted (ErrUnavailable). If it does not
//     queue, the quorum releases the grants that it got, as soon as it can reach their
//     nodes. A claim that queues keeps them, until its caller releases it.
//   - Renew and Release need M of all N nodes, not a majority of the nodes that granted.
//
// A node that comes back without its data has forgotten its votes. It must stay away for
// the longest TTL, lock-delay, minimum hold or break delay in use, plus the difference of
// the clocks, plus [driver.MaxLead]. A node that writes to disk before it answers (Redis
// with appendfsync always, PostgreSQL) need not stay away.
//
// # What it costs
//
// The driver sends an operation to all nodes at once, and needs the answers of the
// fastest majority. A grant takes one more round trip if clocks differ by more than
// MaxLead, or a request takes longer. A semaphore, a forced claim and a claim with a
// value also take one more. The shortest TTL is 200 ms; choose ten round trips or more.
//
// Waiters get their turns in the order in which they asked, by their clients' clocks.
// Another claim can overtake a waiter if these clocks are off by more than half of
// MaxLead, or if claims come to a free name at the same moment. Tries that come at the
// same moment may all fail. Choose an odd number of nodes: with one node more, the quorum
// survives no more losses, and claims more often find no majority.
//
// On the nodes, the owner's client id begins with a tag that identifies the claim on all
// nodes. It is visible if an operator inspects a node directly.
//
// docs/internals/quorum.md has the proofs of these promises, and docs/internals/models
// checks them by machine.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker and driver.Diagnoser; [driver.As] finds them.
package quorumlock
