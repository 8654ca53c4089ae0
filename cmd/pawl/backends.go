package main

// The only file that imports the backends. Each registers its URL schemes.
import (
	"github.com/pawl-go/pawl/driver"
	_ "github.com/pawl-go/pawl/etcdlock"
	_ "github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/mongolock"
	"github.com/pawl-go/pawl/mysqllock"
	_ "github.com/pawl-go/pawl/natslock"
	"github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/redislock/redlock"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

// backends are the beginnings of the URLs that this build knows.
func backends() []string {
	begin := driver.Schemes()
	for i := range begin {
		begin[i] += ":"
	}
	return begin
}

// schemas print what makes the tables, of the backends that have any.
var schemas = map[string]func(tables) (string, error){
	"mysql": func(t tables) (string, error) {
		if t.schema != "" {
			return "", &driver.InvalidError{What: "schema", Problem: "is given, and mysql has none", Allowed: "--prefix"}
		}
		return mysqllock.Schema(t.prefix)
	},
	"postgres": func(t tables) (string, error) {
		return postgreslock.Schema(&postgreslock.Options{Schema: t.schema, Prefix: t.prefix})
	},
}
