//go:build unix

package doctest

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/testservers"
	_ "github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/mongolock"
	_ "github.com/pawl-go/pawl/mysqllock"
	_ "github.com/pawl-go/pawl/natslock"
	_ "github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/redislock/redlock"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

// A stage maps each name of a reader's machine on a page to its name in this test.
type stage []struct{ page, inTest string }

// runnable returns a command of the page in the form in which it runs in this test.
func (s stage) runnable(command string) string {
	for _, name := range s {
		command = strings.ReplaceAll(command, name.page, name.inTest)
	}
	return command
}

// asOnPage returns the output of a command in the form of the page.
func (s stage) asOnPage(printed string) string {
	for _, name := range s {
		printed = strings.ReplaceAll(printed, name.inTest, name.page)
	}
	return printed
}

// stages has the stages of the pages that need one; most start a server. The other pages
// use only the SQLite file of the user.
var stages = map[string]func(t *testing.T) stage{
	"docs/backends/sqlite.md": func(t *testing.T) stage {
		return stage{{"/var/lib/app", filepath.ToSlash(t.TempDir())}}
	},
	"docs/backends/redis.md": func(t *testing.T) stage {
		s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
		return stage{{"localhost:6379", s.Addr}}
	},
	"docs/backends/redlock.md": func(t *testing.T) stage {
		var on stage
		for _, name := range []string{"redis-1", "redis-2", "redis-3"} {
			s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
			on = append(on, stage{{name, s.Addr}}...)
		}
		return on
	},
	"docs/backends/postgres.md": func(t *testing.T) stage {
		s := pgtest.Start(t, "fsync=on")
		s.Database("app")
		return stage{{"localhost:5432", s.Addr}}
	},
	"docs/backends/mysql.md": func(t *testing.T) stage {
		s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
		user := url.UserPassword(mysqltest.User, mysqltest.Password).String()
		return stage{{"pawl:secret@localhost:3306/locks", user + "@" + s.Addr + "/" + mysqltest.Database}, {"localhost:3306", s.Addr}}
	},
	"docs/backends/etcd.md": func(t *testing.T) stage {
		return stage{{"localhost:2379", etcdtest.Start(t, 1).Members[0].Addr}}
	},
	"docs/backends/nats.md": func(t *testing.T) stage {
		return stage{{"localhost:4222", natstest.Start(t, "").Addr}}
	},
	"docs/backends/mongodb.md": func(t *testing.T) stage {
		nightly(t, "it builds FerretDB")
		dir := t.TempDir()
		return stage{{"localhost:27017", testservers.Start(t, "ferretdb", func(addr string) []string {
			return []string{"-data", dir, "-listen", addr}
		})}}
	},
}
