package etcdlock

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// MinTTL is the shortest TTL of a lease. An election in etcd takes about as long.
const MinTTL = time.Second

// Options for a driver. The zero value and nil work.
type Options struct {
	// Prefix begins all keys, followed by two slashes. Clients that must exclude each
	// other need the same prefix. It must not contain two slashes in a row, or end with
	// one. Default: "pawl"; 256 bytes at most.
	Prefix string

	// Retention is the least time for which the backend remembers the last fence of a
	// name after its last grant, and its value after its last lease. An instance that
	// runs a tick of pawl.Once after that repeats it. Default: 24 hours; 1 minute to 30
	// days.
	Retention time.Duration

	// Location names the cluster in errors. Default: its endpoints.
	Location string
}

// withDefaults checks options and fills in the defaults.
func (o *Options) withDefaults() (Options, error) {
	options := *cmp.Or(o, &Options{})
	options.Prefix = cmp.Or(options.Prefix, defaultPrefix)
	options.Retention = cmp.Or(options.Retention, 24*time.Hour)
	if len(options.Prefix) > 256 || strings.Contains(options.Prefix, "//") || strings.HasSuffix(options.Prefix, "/") {
		const allowed = "256 bytes, without two slashes in a row and without one at its end"
		return options, &driver.InvalidError{Argument: "prefix", Problem: "is " + strconv.Quote(options.Prefix), Allowed: allowed}
	}
	if options.Retention < time.Minute || options.Retention > 30*24*time.Hour {
		return options, &driver.InvalidError{Argument: "retention", Problem: "is " + options.Retention.String(), Allowed: "1m to 720h"}
	}
	return options, nil
}

const defaultPrefix = "pawl"
