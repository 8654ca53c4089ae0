package mysqllock

import (
	"cmp"
	"regexp"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value and nil work.
type Options struct {
	// Prefix begins the names of the tables. Clients that exclude each other need the
	// same prefix. Default: "pawl_"; up to 32 letters, digits and underscores.
	Prefix string

	// Retention is the least time for which the backend remembers the last fence of a
	// name after its last grant. After that, the next fence is still greater, unless the
	// server's clock was set back past that grant. Default: 24 hours; at least a minute.
	Retention time.Duration

	// MustExist means that the driver does not create the tables. Set it for a user
	// without the right to create them, and for a program that only reads. Otherwise such
	// a program could create empty tables in a wrong database, and report all locks as
	// free.
	MustExist bool

	// Location names the server in errors. Default: its address and database, for a
	// driver of [Open]; "of the caller" for a driver of [New].
	Location string
}

func (o *Options) withDefaults() (Options, error) {
	out := *cmp.Or(o, &Options{})
	out.Prefix = cmp.Or(out.Prefix, defaultPrefix)
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	out.Location = cmp.Or(out.Location, "of the caller")
	switch {
	case !goodPrefix.MatchString(out.Prefix):
		return out, &driver.InvalidError{Argument: "prefix", Problem: "has invalid characters, or too many", Allowed: "1 to 32 letters, digits and underscores"}
	case out.Retention < time.Minute:
		return out, &driver.InvalidError{Argument: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	}
	return out, nil
}

// locationSuffix returns the part of the location after the database: the prefix, unless
// it is the default.
func (o *Options) locationSuffix() string {
	if o.Prefix == defaultPrefix {
		return ""
	}
	return " prefix=" + o.Prefix
}

const defaultPrefix = "pawl_"

var goodPrefix = regexp.MustCompile(`^[A-Za-z0-9_]{1,32}$`)
