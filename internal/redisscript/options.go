package redisscript

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options are the options of a Driver, and so of redislock and goredislock. Each of the
// two packages declares the fields again, so that its documentation shows them. The
// comment of a field there begins with the comment here, and adds what differs.
type Options struct {
	// Prefix begins all keys and channels. Clients that must exclude each other need the
	// same prefix. It must not contain braces. Default: "pawl:".
	Prefix string

	// Retention is the least time for which the server remembers the last fence of a name
	// after its last grant. Even when it has forgotten that fence, the next one is
	// greater, unless the server's clock was set back past that grant. Default: 24 hours;
	// 1 minute to 30 days.
	Retention time.Duration

	// NoPush is for servers, proxies and users that cannot subscribe: waiters then poll.
	// Default: false; if subscribing fails, the driver goes on without it.
	NoPush bool

	// WaitReplicas is the number of replicas that have to acknowledge a grant before the
	// driver returns it, with Redis' WAIT. A fail-over to one of these replicas then
	// keeps the grant. If fewer acknowledge it within WaitTimeout, the driver gives the
	// grant back, and returns a [*driver.Error] that says how many did. A grant then
	// takes two round trips, and one from the server to the replica. Renewals do not
	// wait. docs/backends/redis.md says what WaitReplicas does not promise. Default: 0,
	// no WAIT; 100 at most.
	WaitReplicas int

	// WaitTimeout bounds the wait for the replicas. The driver also waits no longer than
	// three quarters of the time that the request's ctx has left. Default: 500 ms; 1 ms
	// to 1 minute.
	WaitTimeout time.Duration
}

const defaultPrefix = "pawl:"

// Validate fills in the defaults, and returns an error for invalid options.
func (o *Options) Validate() error {
	o.Prefix = cmp.Or(o.Prefix, defaultPrefix)
	o.Retention = cmp.Or(o.Retention, 24*time.Hour)
	if strings.ContainsAny(o.Prefix, "{}") {
		return &driver.InvalidError{What: "prefix", Problem: "has a brace, and a cluster would see a hash tag in it", Allowed: "no braces"}
	}
	if o.Retention < time.Minute || o.Retention > driver.MaxTTL {
		return &driver.InvalidError{What: "retention", Problem: "is " + o.Retention.String(), Allowed: "1m to 720h"}
	}
	if o.WaitReplicas < 0 || o.WaitReplicas > maxReplicas {
		return &driver.InvalidError{What: "replicas to wait for", Problem: fmt.Sprint("are ", o.WaitReplicas), Allowed: fmt.Sprint("0 to ", maxReplicas)}
	}
	o.WaitTimeout = cmp.Or(o.WaitTimeout, 500*time.Millisecond)
	if o.WaitTimeout < time.Millisecond || o.WaitTimeout > maxReplicaTimeout {
		return &driver.InvalidError{What: "time to wait for replicas", Problem: "is " + o.WaitTimeout.String(), Allowed: "1ms to " + maxReplicaTimeout.String()}
	}
	return nil
}

// DescribeDatabase returns the description of a database, because two databases of one
// server are two backends.
func DescribeDatabase(server string, database int) string {
	if database == 0 {
		return server
	}
	return server + "/" + strconv.Itoa(database)
}
