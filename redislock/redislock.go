// Package redislock keeps locks in Redis or Valkey: one server, a group with Sentinel, or a cluster.
//
//	d, err := redislock.Open(ctx, "redis://localhost:6379")
//	locks, err := pawl.New(d, nil)
//
// or, by URL, pawl.Open(ctx, "redis://localhost:6379", nil). With a rueidis client that you have already, [New] makes
// the driver; with a go-redis client, package goredislock does.
//
// # Which URLs are there?
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DB]      one server; a node of a cluster is recognised
//	rediss://...                                  the same with TLS: &ca_cert=FILE, &server_name=, &skip_verify=true
//	redis+unix:///PATH?db=N                       a Unix socket
//	redis://HOST1:PORT,HOST2:PORT                 a cluster; &addr=HOST:PORT names further hosts, too
//	redis://HOST1,HOST2/DB?master_set=NAME        Sentinels, and the name of the master: &sentinel_username=, &sentinel_password=
//
// valkey: and valkeys: are the same as redis: and rediss:. Further parameters: client_name, dial_timeout, write_timeout,
// protocol=2, cluster=false, prefix, retention, push=false, tracking=false, wait_replicas, wait_timeout ([Options]);
// and lazy=true, to open one server without asking whether it is there: the first step connects, without tracking,
// and each step tries again while that fails.
//
// # What does the server need?
//
// Redis 6.2 or later, scripts, and for speed Pub/Sub. Locks are as safe as its data: maxmemory-policy noeviction, appendonly
// yes, and with replicas min-replicas-to-write 1. docs/backends.md has the rights of an ACL user; the
// driver's Diagnose (`pawl doctor`) looks at all of it.
//
// # What happens in a fail-over?
//
// Replication is asynchronous: the last grants before it can be lost, and then granted again while the first holder still
// believes in its lease. The fence of the second is greater, so a guard at the resource refuses the first. No client
// can promise more on Redis; Options.WaitReplicas makes it rare; several independent servers can promise it: package redlock.
//
// # Whose clock decides?
//
// The server's, read in each step. Ours may be wrong. Fences are microseconds of the server's clock, or the last fence and one.
//
// # What does a lock cost?
//
// Acquire, renew and release are a script each, in one round trip; those of goroutines that come at the same time share
// one. A name that is handed over costs the next one a message, with the fence in it, and no request. A name that
// nobody waits for is one key of about 150 bytes; it is forgotten a day after its last grant. A lease costs no goroutine
// and no connection; a driver has two connections to each server, one of them for what the server says unasked.
//
// # When does a holder hear that it lost?
//
// At once when it is broken, or taken by ForceLock. When somebody deletes the key, flushes the database, or Redis evicts it: at once
// for what [Open] opened with RESP3, and for a client that [Track] prepared; by the next renewal otherwise. Properties().ReportsDeletions
// says which it is, and Diagnose why.
package redislock

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins all keys and channels. Clients that shall exclude each other have the same one; it must not
	// contain braces. Default: "pawl:".
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant, at the least. When it is
	// forgotten, the next fence is greater all the same, unless the server's clock was set back past that grant.
	// Default: 24 hours; 1 minute to 30 days.
	Retention time.Duration

	// NoPush is for servers, proxies and users that cannot subscribe: waiters then ask now and then. Default:
	// false; where subscribing fails the driver goes on without.
	NoPush bool

	// WaitReplicas is how many replicas have to acknowledge a grant before it is shown, with Redis' WAIT: a fail-over to one of them then
	// does not forget it. If fewer do within WaitTimeout the grant is given back, and the error is a [*driver.Error] that says how many
	// did. It costs two round trips and that of the replica, on a connection that nobody else uses meanwhile. Renewals do
	// not wait. docs/backends.md has what it does not promise. Default: 0, no WAIT; 100 at most.
	WaitReplicas int

	// WaitTimeout is how long replicas have for that; three quarters of what is left of the attempt's ctx, if that is less.
	// Default: 500 ms; 1 ms to 1 minute.
	WaitTimeout time.Duration

	// Tracking is what Track made for the client that is given to New. Default: none, and then a holder hears by its
	// next renewal that somebody deleted what it holds.
	Tracking *Tracking

	// Where is how errors name the server. Default: the addresses, for what was opened by [Open]; "of the caller" for
	// a client that was handed over.
	Where string
}

// Driver is a client of Redis. It implements driver.Driver, driver.Signaler, driver.Lister, driver.LeaseBreaker,
// driver.FenceRaiser and driver.Diagnoser.
type Driver struct {
	*redisscript.Driver
}

// New makes a driver over a client that is open, and stays so when the driver is closed. Its error is a
// [*driver.InvalidError].
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
	options := redisscript.Options{
		Prefix: own.Prefix, Retention: own.Retention, Push: !own.NoPush, Watch: track != nil, Unwatched: untracked,
		Replicas: own.WaitReplicas, ReplicaTimeout: own.WaitTimeout,
	}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	d := &Driver{redisscript.New(s, options)}
	track.tell(d.Driver)
	return d, nil
}
