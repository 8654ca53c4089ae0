package redislock

import (
	"time"
)

// Options for a driver. The zero value and nil work.
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
	// no WAIT; 100 at most. While the driver waits for the replicas, no other request
	// uses the connection.
	WaitReplicas int

	// WaitTimeout bounds the wait for the replicas. The driver also waits no longer than
	// three quarters of the time that the request's ctx has left. Default: 500 ms; 1 ms
	// to 1 minute.
	WaitTimeout time.Duration

	// Tracking is the result of Track for the options of the client. Default: none; then
	// a holder detects only with its next renewal that another client has deleted its
	// key.
	Tracking *Tracking

	// Location names the server in errors. Default: the addresses, for a driver of
	// [Open]; "of the caller" for a driver of [New].
	Location string
}
