package goredislock

import (
	"time"
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
	// 100 at most.
	WaitReplicas int

	// WaitTimeout is how long replicas have for that; three quarters of what is left of
	// the request's ctx, if that is less. Default: 500 ms; 1 ms to 1 minute. Three
	// quarters of the client's ReadTimeout is a bound, too.
	WaitTimeout time.Duration
}
