package mysqllock

import (
	"cmp"
	"regexp"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins the names of the tables. Clients that shall exclude each other have
	// the same one. Default: "pawl_"; up to 32 letters, digits and underscores.
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant,
	// at the least. When it is forgotten, the next fence is greater all the same, unless
	// the server's clock was set back past that grant. Default: 24 hours; at least a
	// minute.
	Retention time.Duration

	// MustExist refuses to make the tables: for a user without the right to, and for a
	// program that must not take tables made in a wrong database for locks that nobody
	// holds.
	MustExist bool

	// Where is how errors name the server. Default: its address and database, for what
	// was opened by [Open]; "of the caller" for a pool that was handed over.
	Where string
}

func (o *Options) withDefaults() (Options, error) {
	out := *cmp.Or(o, &Options{})
	out.Prefix = cmp.Or(out.Prefix, defaultPrefix)
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	out.Where = cmp.Or(out.Where, "of the caller")
	switch {
	case !goodPrefix.MatchString(out.Prefix):
		return out, &driver.InvalidError{What: "prefix", Problem: "has other characters, or too many", Allowed: "1 to 32 letters, digits and underscores"}
	case out.Retention < time.Minute:
		return out, &driver.InvalidError{What: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	}
	return out, nil
}

const defaultPrefix = "pawl_"

var goodPrefix = regexp.MustCompile(`^[A-Za-z0-9_]{1,32}$`)
