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

// A stage is where a page is played: what it calls by the names of a reader's machine,
// and what that is here.
type stage []struct{ page, here string }

// here is a command of the page as it is run.
func (s stage) here(command string) string {
	for _, name := range s {
		command = strings.ReplaceAll(command, name.page, name.here)
	}
	return command
}

// asOnPage is what a command printed, as the page has it.
func (s stage) asOnPage(printed string) string {
	for _, name := range s {
		printed = strings.ReplaceAll(printed, name.here, name.page)
	}
	return printed
}

// stages are the servers that pages need; others have none but the SQLite file of the
// user. Each is started when its page is run.
var stages = map[string]func(t *testing.T) stage{
	"docs/start/sqlite.md": func(t *testing.T) stage {
		return stage{{"/var/lib/app", filepath.ToSlash(t.TempDir())}}
	},
	"docs/start/redis.md": func(t *testing.T) stage {
		s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
		return stage{{"localhost:6379", s.Addr}}
	},
	"docs/start/postgres.md": func(t *testing.T) stage {
		s := pgtest.Start(t, "fsync=on")
		s.Database("app")
		return stage{{"localhost:5432", s.Addr}}
	},
	"docs/start/mysql.md": func(t *testing.T) stage {
		s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
		user := url.UserPassword(mysqltest.User, mysqltest.Password).String()
		return stage{{"pawl:secret@localhost:3306/locks", user + "@" + s.Addr + "/" + mysqltest.Database}, {"localhost:3306", s.Addr}}
	},
	"docs/start/etcd.md": func(t *testing.T) stage {
		return stage{{"localhost:2379", etcdtest.Start(t, 1).Members[0].Addr}}
	},
	"docs/start/nats.md": func(t *testing.T) stage {
		return stage{{"localhost:4222", natstest.Start(t, "").Addr}}
	},
	"docs/start/mongodb.md": func(t *testing.T) stage {
		dir := t.TempDir()
		return stage{{"localhost:27017", testservers.Start(t, "ferretdb", func(addr string) []string {
			return []string{"-data", dir, "-listen", addr}
		})}}
	},
}
