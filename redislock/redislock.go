// Package redislock keeps locks in Redis or Valkey: one server, a group with Sentinel, or
// a cluster. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/redislock"
//
//	locks, err := pawl.Open(ctx, "redis://localhost:6379", nil)
//
// With a rueidis client that you have already, [New] makes the driver; with a go-redis
// client, package goredislock does.
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
// Most URLs have none. Those that are true or false are true without a value; durations
// are 500ms, 10s or 1h.
//
//	addr=HOST:PORT           a further host; as often as there are hosts
//	db=N                     the database, as /N after the host
//	client_name=NAME         what CLIENT LIST shows
//	dial_timeout=5s          for a connection to be made
//	write_timeout=10s        for a request, and its answer
//	protocol=2               RESP2, for proxies that know no more; without tracking
//	cluster=false            a node of a cluster is one server
//	lazy=true                open one server without asking whether it is there: each step
//	                         tries to connect while that fails; without tracking
//
//	master_set=NAME          the master that the Sentinels watch; also master_name=NAME
//	sentinel_username=USER   at the Sentinels
//	sentinel_password=...
//
//	ca_cert=FILE             with rediss: trust only the authorities in this PEM file
//	server_name=NAME         with rediss: the name in all certificates; else each node's is for the
//	                         address that it, or a Sentinel, announces
//	skip_verify=true         with rediss: trust any certificate
//
//	prefix=app:              the rest are fields of Options: Prefix
//	retention=24h            Retention
//	push=false               NoPush
//	wait_replicas=1          WaitReplicas
//	wait_timeout=500ms       WaitTimeout
//	tracking=false           do not ask to be told of keys that are deleted; see Track
//
// # What does the server need?
//
// Redis 6.2 or later, scripts, and for speed Pub/Sub. Locks are as safe as its data:
// maxmemory-policy noeviction, appendonly yes, and with replicas min-replicas-to-write 1.
// docs/backends-redis.md has the rights of an ACL user; the driver's Diagnose (`pawl
// doctor`) looks at all of it.
//
// # What happens in a fail-over?
//
// Replication is asynchronous: the last grants before a fail-over can be lost, and then
// granted again while the first holder still believes in its lease. The fence of the
// second is greater, so a guard at the resource refuses the first. No client can promise
// more on Redis; [Options].WaitReplicas makes it rare; several independent servers can
// promise it: package redlock.
//
// # Whose clock decides?
//
// The server's, read in each step. The clock of the client may be wrong. Fences are
// microseconds of the server's clock, or the last fence and one.
//
// # What does a lock cost?
//
// Acquire, renew and release are a script each, in one round trip; those of goroutines
// that come at the same time share one. A name that is handed over costs the next holder
// a message, with the fence in it, and no request. A name that nobody waits for is one
// key of about 150 bytes; it is forgotten a day after its last grant. A lease costs no
// goroutine and no connection. A driver has two connections to each server, one of them
// for what the server says unasked; and, outside of a cluster, up to four more for the
// scripts that goroutines share: two where the server is quick.
//
// # When does a holder hear that it lost?
//
// At once when it is broken, or taken by ForceLock. When somebody deletes the key,
// flushes the database, or Redis evicts it: at once for what [Open] opened with RESP3,
// and for a client that [Track] prepared; by the next renewal otherwise.
// Properties().ReportsDeletions says which it is, and Diagnose why.
package redislock

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisoptions"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins all keys and channels. Clients that shall exclude each other have the
	// same one; it must not contain braces. Default: "pawl:".
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant,
	// at the least. When it is forgotten, the next fence is greater all the same, unless
	// the server's clock was set back past that grant. Default: 24 hours; 1 minute to 30
	// days.
	Retention time.Duration

	// NoPush is for servers, proxies and users that cannot subscribe: waiters then ask
	// now and then. Default: false; where subscribing fails the driver goes on without.
	NoPush bool

	// WaitReplicas is how many replicas have to acknowledge a grant before it is shown,
	// with Redis' WAIT: a fail-over to one of them then does not forget it. If fewer do
	// within WaitTimeout the grant is given back, and the error is a [*driver.Error] that
	// says how many did. It costs two round trips and that of the replica. Renewals do
	// not wait. docs/backends-redis.md has what it does not promise. Default: 0, no WAIT;
	// 100 at most. The connection is used by nobody else meanwhile.
	WaitReplicas int

	// WaitTimeout is how long replicas have for that; three quarters of what is left of
	// the request's ctx, if that is less. Default: 500 ms; 1 ms to 1 minute.
	WaitTimeout time.Duration

	// Tracking is what Track made for the client that is given to New. Default: none, and
	// then a holder hears by its next renewal that somebody deleted what it holds.
	Tracking *Tracking

	// Where is how errors name the server. Default: the addresses, for what was opened by
	// [Open]; "of the caller" for a client that was handed over.
	Where string
}

// Driver is a client of Redis. It implements driver.Driver, driver.Signaler,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser.
type Driver struct {
	*redisscript.Driver
}

// New makes a driver over a client that is open, and stays so when the driver is closed.
// Its error is a [*driver.InvalidError].
func New(client rueidis.Client, o *Options) (*Driver, error) {
	if client == nil {
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open rueidis.Client"}
	}
	var track *tracker
	if o != nil && o.Tracking != nil {
		track = &o.Tracking.tracker
	}
	return build(&sender{client: client, push: client}, o, track, "the client was not prepared by Track")
}

// build makes the driver; untracked says why it is, if track is nil.
func build(s *sender, o *Options, track *tracker, untracked string) (*Driver, error) {
	own := Options{}
	if o != nil {
		own = *o
	}
	if s.where == "" {
		s.where = own.Where
	}
	if s.where == "" {
		s.where = "of the caller"
	}
	options := redisoptions.Options{
		Prefix: own.Prefix, Retention: own.Retention, NoPush: own.NoPush, WaitReplicas: own.WaitReplicas, WaitTimeout: own.WaitTimeout,
	}.Scripts()
	options.Track, options.Untracked = track != nil, untracked
	if err := options.Validate(); err != nil {
		return nil, err
	}
	d := &Driver{redisscript.New(s, options)}
	track.tell(d.Driver)
	return d, nil
}
