// Package redislock keeps locks in Redis or Valkey: one server, a group with Sentinel, or
// a cluster. Most programs need only a URL:
//
//	import _ "github.com/pawl-go/pawl/redislock"
//
//	locks, err := pawl.Open(ctx, "redis://localhost:6379", nil)
//
// With a rueidis client of your own, [New] makes the driver; with a go-redis client,
// package goredislock does.
//
// # Which URLs are there?
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DB]   one server; a node of a cluster is recognised
//	rediss://...                               the same with TLS
//	redis+unix:///PATH?db=N                    a Unix socket
//	redis://HOST1:PORT,HOST2:PORT              a cluster
//	redis://HOST1,HOST2/DB?master_set=NAME     Sentinels, and the name of the master
//
// valkey: and valkeys: are the same as redis: and rediss:. User and password are
// percent-encoded.
//
// # Which parameters do URLs have?
//
// Most URLs have no parameters. Parameters that are true or false are true without a
// value; durations are 500ms, 10s or 1h.
//
//	addr=HOST:PORT           one more host; repeat it for each host
//	db=N                     the database, as /N after the host
//	client_name=NAME         the name in CLIENT LIST
//	dial_timeout=5s          for making a connection
//	write_timeout=10s        for a request, and its answer
//	protocol=2               use RESP2, for proxies without RESP3; disables tracking
//	cluster=false            treat a node of a cluster as a single server
//
//	master_set=NAME          the master that the Sentinels watch; also master_name=NAME
//	sentinel_username=USER   the user at the Sentinels
//	sentinel_password=...
//
//	ca_cert=FILE             with rediss: trust only the authorities in this PEM file
//	client_cert=FILE         with rediss: the client's own certificate, and
//	client_key=FILE          its key
//	server_name=NAME         with rediss: the name in the certificates of all nodes; default: the address
//	                         that the node, or a Sentinel, announces
//	skip_verify=true         with rediss: trust any certificate
//
// Each new connection reads these files again.
//
//	prefix=app:              the rest are fields of Options: Prefix
//	retention=24h            Retention
//	push=false               NoPush
//	wait_replicas=1          WaitReplicas
//	wait_timeout=500ms       WaitTimeout
//	tracking=false           no reports of deleted keys from the server; see Track
//
// # What does the server need?
//
// The server needs Redis 6.2 or later, scripts, and for speed Pub/Sub. If it loses data,
// it loses locks: set maxmemory-policy noeviction, appendonly yes, and with replicas
// min-replicas-to-write 1. docs/backends/redis.md has the rights of an ACL user; the
// driver's Diagnose (`pawl doctor`) checks all of this.
//
// # What happens in a fail-over?
//
// Replication is asynchronous: a fail-over can lose the last grants, and the new master
// then grants the names again while the first holder still relies on its lease. The
// second fence is greater, so a resource that checks fences refuses the first holder.
// [Options].WaitReplicas makes such a loss rare; several independent servers exclude it:
// package redlock.
//
// # Whose clock decides?
//
// The server's clock, which each step reads. The clock of the client may be wrong. A
// fence is the server's time in microseconds, or one more than the last fence if that is
// greater.
//
// # What does a lock cost?
//
// Acquire, renew and release are a script each, in one round trip; concurrent steps of
// several goroutines share a script. When a release grants the name to a waiter, the
// waiter gets a message with the fence, and sends no request. A name without waiters is
// one key of about 150 bytes. The server deletes the key a day after the name's last
// grant, and a stored value a day after the name's last lease. A lease costs no goroutine
// and no connection. A driver has two connections to each server, one of them for
// messages that the server pushes. Outside of a cluster it has up to two more for the
// scripts that goroutines share.
//
// # When does a holder learn that it lost?
//
// After a Break or ForceLock, the server notifies the holder at once. If another client
// deletes the key or flushes the database, or Redis evicts the key, the holder detects
// that with its next renewal. With tracking, the server notifies the holder at once. A
// driver has tracking if [Open] made it and the server has RESP3, or if [Track] prepared
// the client. If Properties().ReportsDeletions is false, Diagnose says why.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser, driver.AllAcquirer and driver.Diagnoser;
// [driver.As] finds them. In a cluster AcquireAll takes names of one slot only.
package redislock
