//go:build !embedded

package main

// The tag embedded leaves these out, because their clients take most of the time of a
// first build.
import (
	"github.com/pawl-go/pawl/driver"
	_ "github.com/pawl-go/pawl/etcdlock"
	_ "github.com/pawl-go/pawl/mongolock"
	"github.com/pawl-go/pawl/mysqllock"
	_ "github.com/pawl-go/pawl/natslock"
	"github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/redislock/redlock"
)

// leftOutHint is the end of an error that lists backends.
const leftOutHint = ""

func init() {
	schemas["mysql"] = func(t tables) (string, error) {
		if t.schema != "" {
			return "", &driver.InvalidError{Argument: "schema", Problem: "is given, and mysql has none", Allowed: "--prefix"}
		}
		return mysqllock.Schema(&mysqllock.Options{Prefix: t.prefix})
	}
	schemas["postgres"] = func(t tables) (string, error) {
		return postgreslock.Schema(&postgreslock.Options{Schema: t.schema, Prefix: t.prefix})
	}
}
