package postgreslock

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value and nil work.
type Options struct {
	// Schema is the schema of the tables. The driver creates it if it is missing.
	// Applications with different schemas do not share locks. Default: "pawl".
	Schema string

	// Prefix begins the names of the tables, for a schema that has other tables in it,
	// such as "pawl_" in "public".
	Prefix string

	// Retention is the time for which the backend remembers the last fence of a name
	// after its last grant. After that, the next fence is still greater, unless the clock
	// was set back past that grant. The backend also forgets the name's value then. An
	// instance that runs a tick of pawl.Once after Retention repeats it, so set Retention
	// above the longest delay. Default: 24 hours; at least a minute.
	Retention time.Duration

	// NoPush makes waiting claims poll the table instead of listening for signals. It
	// saves a connection.
	NoPush bool
}

func (o *Options) withDefaults() (Options, error) {
	out := *cmp.Or(o, &Options{})
	out.Schema = cmp.Or(out.Schema, "pawl")
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	for what, name := range map[string]string{"schema": out.Schema, "prefix": out.Prefix} {
		if name == "" {
			continue
		}
		if err := driver.ValidateName(name); err != nil || len(name) > maxIdentifier {
			return out, &driver.InvalidError{Argument: what, Problem: "is no name for PostgreSQL", Allowed: fmt.Sprintf("up to %d bytes of UTF-8", maxIdentifier)}
		}
	}
	if out.Retention < time.Minute {
		return out, &driver.InvalidError{Argument: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	}
	return out, nil
}

// maxIdentifier bounds the length of the schema and of the prefix, so that the prefix and
// the longest name of a table, index or constraint fit into 63 bytes.
const maxIdentifier = 63 - len("tidying_one_check")
