// Package etcdlock keeps locks in etcd. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/etcdlock"
//
//	locks, err := pawl.Open(ctx, "etcd://n1:2379,n2:2379,n3:2379", nil)
//
// With a client of go.etcd.io/etcd/client/v3 of your own, [New] makes the driver.
//
// # Which URLs are there?
//
//	etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX]
//	etcds://...                               the same with TLS
//
// Name all members; their default port is 2379. User and password are percent-encoded.
// PREFIX begins all keys; the default is pawl.
//
//	retention=24h        how long the last fence of a name is remembered
//	dial_timeout=5s      how long it may take until the cluster answers, at opening
//	ca_cert=FILE         with etcds: trust only the authorities in this PEM file
//	client_cert=FILE     with etcds: the client's own certificate, and
//	client_key=FILE      its key
//	server_name=NAME     with etcds: the name in the servers' certificates
//	skip_verify=true     with etcds: trust any certificate
//
// Each new connection reads these files again.
//
// # What does the cluster need?
//
// It needs etcd 3.4 or later. The tests run on 3.7.3; most were also run once on 3.4.23.
// With authentication it needs a role with readwrite on all keys that begin with
// PREFIX//. Set --auto-compaction-retention: each renewal is a revision, which etcd keeps
// until it compacts. The driver's Diagnose (`pawl doctor`) checks this.
//
// # What does a lock cost?
//
// Acquire and release cost one request each, and one more for a new name. Goroutines
// share requests, up to 60 names in one. A process has two watches and one etcd lease.
// All processes together write a clock, see below: up to seven requests a second while
// locks are in use, one a second for a minute after that, and then one every ten seconds.
//
// # What is guaranteed, and whose clock decides?
//
// Locks survive elections, restarts, and the loss of a minority of the members. A lease
// lasts 0.35 s longer than its TTL, and two more round trips if a round trip takes 50 ms
// or longer. The clients advance a clock in a key, according to their monotonic clocks,
// see docs/internals/etcd-clock.md. While no client is open the clock stands still, and
// only one etcd lease measures time, so that a cron job that retries still sees a dead
// holder expire. After a restore, the locks of the snapshot are held again, until they
// expire; holders of later grants lose their leases, and are notified. Fences rise across
// a restore, and across the loss of all data if the clients' wall clocks are about right.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser, driver.AllAcquirer and driver.Diagnoser;
// [driver.As] finds them.
package etcdlock
