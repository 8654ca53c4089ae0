package main

// The only file that imports the backends. Each registers its URL schemes.
import (
	"github.com/pawl-go/pawl/driver"
	_ "github.com/pawl-go/pawl/etcdlock"
	_ "github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/mysqllock"
	_ "github.com/pawl-go/pawl/natslock"
	_ "github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/redlock"
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
