package mongolock

import (
	"cmp"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value and nil work.
type Options struct {
	// Collection has the locks. A second collection, with ".signals" behind its name, has
	// the signals. Clients that exclude each other need the same database and the same
	// collection. Default: "pawl".
	Collection string

	// Retention is the least time for which the server remembers a name after its last
	// use. After that, the next fence is still greater, unless the server's clock was set
	// back past the last grant. Default: 24 hours; at least a minute.
	Retention time.Duration

	// NoPush makes the driver poll for signals, and not use change streams.
	NoPush bool

	// Location names the server in errors. Default: its addresses, for a driver of
	// [Open]; "of the caller" for a driver of [New].
	Location string
}

func (o *Options) withDefaults() (Options, error) {
	options := *cmp.Or(o, &Options{})
	options.Collection = cmp.Or(options.Collection, defaultCollection)
	options.Retention = cmp.Or(options.Retention, 24*time.Hour)
	options.Location = cmp.Or(options.Location, "of the caller")
	switch {
	case options.Retention < time.Minute:
		return options, &driver.InvalidError{Argument: "retention", Problem: "is " + options.Retention.String(), Allowed: "1m or more"}
	case len(options.Collection) > 120, strings.ContainsAny(options.Collection, "$\x00"), strings.HasPrefix(options.Collection, "system."):
		return options, &driver.InvalidError{
			Argument: "collection", Problem: "is not a name that MongoDB takes",
			Allowed: "1 to 120 bytes without $ and NUL, not beginning with system.",
		}
	}
	return options, nil
}

const defaultCollection = "pawl"
