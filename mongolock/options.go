package mongolock

import (
	"cmp"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Collection is where the locks are. Signals have one beside it, with ".signals"
	// behind its name. Clients that shall exclude each other have the same database and
	// the same collection. Default: "pawl".
	Collection string

	// Retention is how long a name is remembered after its last use, at the least. When
	// it is forgotten, the next fence is greater all the same, unless the server's clock
	// was set back past its last grant. Default: 24 hours; at least a minute.
	Retention time.Duration

	// NoPush does without change streams: signals are then looked for.
	NoPush bool

	// Where is how errors name the server. Default: its addresses, for what was opened by
	// [Open]; "of the caller" for a client that was handed over.
	Where string
}

func (o *Options) withDefaults() (Options, error) {
	out := *cmp.Or(o, &Options{})
	out.Collection = cmp.Or(out.Collection, defaultCollection)
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	out.Where = cmp.Or(out.Where, "of the caller")
	switch {
	case out.Retention < time.Minute:
		return out, &driver.InvalidError{What: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	case len(out.Collection) > 120, strings.ContainsAny(out.Collection, "$\x00"), strings.HasPrefix(out.Collection, "system."):
		return out, &driver.InvalidError{
			What: "collection", Problem: "is not a name that MongoDB takes",
			Allowed: "1 to 120 bytes without $ and NUL, not beginning with system.",
		}
	}
	return out, nil
}

const defaultCollection = "pawl"
