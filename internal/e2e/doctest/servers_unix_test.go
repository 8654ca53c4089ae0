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

// A nameMap maps addresses and paths of a page to addresses and paths of this test.
type nameMap []struct{ page, inTest string }

// toTest returns a command of the page in the form in which it runs in this test.
func (s nameMap) toTest(command string) string {
	for _, name := range s {
		command = strings.ReplaceAll(command, name.page, name.inTest)
	}
	return command
}

// asOnPage returns the output of a command in the form of the page.
func (s nameMap) asOnPage(printed string) string {
	for _, name := range s {
		printed = strings.ReplaceAll(printed, name.inTest, name.page)
	}
	return printed
}

// startServersFor starts what a page needs.
func startServersFor(t *testing.T, page string) nameMap {
	t.Helper()
	if setup := pageSetups[page]; setup != nil {
		return setup(t)
	}
	return nil
}

// startFerretDB returns the address of a server of MongoDB's protocol.
func startFerretDB(t *testing.T) (addr string) {
	t.Helper()
	skipIfShort(t, "it builds FerretDB")
	dir := t.TempDir()
	return testservers.Start(t, "ferretdb", func(addr string) []string { return []string{"-data", dir, "-listen", addr} })
}

// pageSetups has a set-up for each page that needs one; most start a server. The other
// pages use only the SQLite file of the user.
var pageSetups = map[string]func(t *testing.T) nameMap{
	"docs/backends/sqlite.md": func(t *testing.T) nameMap {
		return nameMap{{"/var/lib/app", filepath.ToSlash(t.TempDir())}}
	},
	"docs/backends/redis.md": func(t *testing.T) nameMap {
		s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
		return nameMap{{"localhost:6379", s.Addr}}
	},
	"docs/backends/redlock.md": func(t *testing.T) nameMap {
		var names nameMap
		for _, name := range []string{"redis-1", "redis-2", "redis-3"} {
			s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
			names = append(names, nameMap{{name, s.Addr}}...)
		}
		return names
	},
	"docs/backends/postgres.md": func(t *testing.T) nameMap {
		s := pgtest.Start(t, "fsync=on")
		s.Database("app")
		return nameMap{{"localhost:5432", s.Addr}}
	},
	"docs/backends/mysql.md": func(t *testing.T) nameMap {
		s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
		user := url.UserPassword(mysqltest.User, mysqltest.Password).String()
		return nameMap{{"pawl:secret@localhost:3306/locks", user + "@" + s.Addr + "/" + mysqltest.Database}, {"localhost:3306", s.Addr}}
	},
	"docs/backends/etcd.md": func(t *testing.T) nameMap {
		return nameMap{{"localhost:2379", etcdtest.Start(t, 1).Members[0].Addr}}
	},
	"docs/backends/nats.md": func(t *testing.T) nameMap {
		return nameMap{{"localhost:4222", natstest.Start(t, "").Addr}}
	},
	"docs/backends/mongodb.md": func(t *testing.T) nameMap {
		return nameMap{{"localhost:27017", startFerretDB(t)}}
	},
}
