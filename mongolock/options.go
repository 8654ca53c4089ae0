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
	out := *cmp.Or(o, &Options{})
	out.Collection = cmp.Or(out.Collection, defaultCollection)
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	out.Location = cmp.Or(out.Location, "of the caller")
	switch {
	case out.Retention < time.Minute:
		return out, &driver.InvalidError{Argument: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	case len(out.Collection) > 120, strings.ContainsAny(out.Collection, "$\x00"), strings.HasPrefix(out.Collection, "system."):
		return out, &driver.InvalidError{
			Argument: "collection", Problem: "is not a name that MongoDB takes",
			Allowed: "1 to 120 bytes without $ and NUL, not beginning with system.",
		}
	}
	return out, nil
}

const defaultCollection = "pawl"
