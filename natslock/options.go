package natslock

import (
	"cmp"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value and nil work.
type Options struct {
	// Bucket is the key-value bucket of the locks: 1 to 64 letters, digits, - and _.
	// Clients that must exclude each other need the same bucket. Default: "pawl".
	Bucket string

	// Replicas and Memory are for a bucket that the driver creates on first use. Default:
	// on disk, with three replicas in a cluster; with one replica on a single server, or
	// if the cluster has too few servers.
	Replicas int
	Memory   bool

	// MustExist means that the driver does not create the bucket. Default: false.
	MustExist bool

	// Retention is the least time for which the server remembers the last fence of a name
	// after its last grant. After that, the next fence is still greater, unless the
	// server's clock was set back past that grant. Default: 24 hours; 1 minute to 30
	// days. The server keeps the name's value for the same time after its last lease. An
	// instance that runs a tick of pawl.Once after that repeats it. Retention requires a
	// bucket with TTLs for each message, as natslock creates it.
	Retention time.Duration

	// NoPush is for users that may not publish to the inboxes of other clients. Waiters
	// then poll. Default: false.
	NoPush bool

	// Domain is the JetStream domain of the bucket. Default: the domain of the server.
	Domain string

	// Location names the server in errors. Default: the addresses, for a driver of
	// [Open]; "of the caller" for a driver of [New].
	Location string
}

// withDefaults returns o with its defaults, or an error if o is invalid.
func (o *Options) withDefaults() (Options, error) {
	options := *cmp.Or(o, &Options{})
	options.Bucket = cmp.Or(options.Bucket, "pawl")
	options.Retention = cmp.Or(options.Retention, 24*time.Hour)
	options.Location = cmp.Or(options.Location, "of the caller")
	switch {
	case !isPlainName(options.Bucket):
		return options, invalid("bucket", "is not a valid name", "1 to 64 letters, digits, - and _")
	case options.Domain != "" && !isPlainName(options.Domain):
		return options, invalid("domain", "is not a valid name", "1 to 64 letters, digits, - and _")
	case options.Replicas < 0 || options.Replicas > 5:
		return options, invalid("replicas", "is out of bounds", "1 to 5")
	case options.Retention < time.Minute || options.Retention > 30*24*time.Hour:
		return options, invalid("retention", "is out of bounds", "1m to 720h")
	}
	return options, nil
}

func alphanumeric(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isPlainName reports whether s can be the name of a bucket or a domain.
func isPlainName(s string) bool {
	isRefused := func(c rune) bool { return !alphanumeric(c) && c != '-' && c != '_' }
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, isRefused)
}

func invalid(what, problem, allowed string) error {
	return &driver.InvalidError{Argument: what, Problem: problem, Allowed: allowed}
}
