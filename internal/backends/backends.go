// Package backends is the table of all backends. Other lists of backends are made from
// it, or a test compares them with it.
package backends

import "slices"

// A Backend is a package with a driver. Most register URL schemes. The others make a
// driver from a client that the caller has opened.
type Backend struct {
	Name    string   // as in the tables of the documents
	Folder  string   // of its package
	Schemes []string // of its URLs
	TLS     []string // the schemes that always use TLS
	URL     string   // as the help of the command shows it; empty if the help leaves it out
	Page    string   // the name of its page in docs/backends, without .md; empty if it has none

	// Engines are the names of servers for `make prove ENGINE=NAME` with this backend.
	Engines []string

	// Needs has the programs that its tests need, as COMMAND:DEBIAN-PACKAGE. The Makefile
	// reads this list, and `make test` installs the programs that are missing.
	Needs string

	// Clients are the modules that the backend may import, each with an old version. A
	// user may have pinned that version, so no other backend may require a newer one.
	Clients map[string]string
}

// All are the backends, in the order of the documents.
var All = []Backend{
	{Name: "memory", Folder: "memlock", Schemes: []string{"mem"}, Page: "memory", Engines: []string{"memory"}},
	{
		Name: "SQLite", Folder: "sqlitelock", Schemes: []string{"sqlite"}, URL: "sqlite:/PATH/locks.db", Page: "sqlite",
		Engines: []string{"sqlite"}, Clients: map[string]string{"modernc.org/sqlite": "v1.46.2"},
	},
	{
		Name: "Redis", Folder: "redislock", Schemes: []string{"redis", "rediss", "redis+unix", "valkey", "valkeys"},
		TLS: []string{"rediss", "valkeys"}, Engines: []string{"redis", "cluster", "sentinel"},
		URL: "redis://HOST:6379", Page: "redis", Clients: map[string]string{"github.com/redis/rueidis": "v1.0.77"},
		Needs: "redis-server:redis-server redis-sentinel:redis-sentinel",
	},
	{Name: "Redis", Folder: "goredislock", Clients: map[string]string{"github.com/redis/go-redis/v9": "v9.5.0"}},
	{
		Name: "quorum", Folder: "redislock/redlock", Schemes: []string{"redlock", "redlocks"},
		TLS: []string{"redlocks"}, Engines: []string{"redlock"}, URL: "redlock://HOST1,HOST2,HOST3",
	},
	{
		Name: "etcd", Folder: "etcdlock", Schemes: []string{"etcd", "etcds"}, URL: "etcd://HOST:2379", Page: "etcd",
		TLS: []string{"etcds"}, Engines: []string{"etcd"},
		Clients: map[string]string{
			"go.etcd.io/etcd/client/v3": "v3.5.0", "go.etcd.io/etcd/api/v3": "v3.5.0",
			"google.golang.org/grpc": "v1.60.0", "go.uber.org/zap": "v1.20.0",
		},
	},
	{
		Name: "PostgreSQL", Folder: "postgreslock", Schemes: []string{"postgres", "postgresql"},
		URL: "postgres://USER@HOST/DATABASE", Page: "postgres", Clients: map[string]string{"github.com/jackc/pgx/v5": "v5.6.0"},
		Engines: []string{"postgres"},
		Needs:   "pgbouncer:pgbouncer pg_ctlcluster:postgresql",
	},
	{
		Name: "MySQL and MariaDB", Folder: "mysqllock", Schemes: []string{"mysql", "mariadb"},
		URL: "mysql://USER@HOST/DATABASE", Page: "mysql", Clients: map[string]string{"github.com/go-sql-driver/mysql": "v1.8.1"},
		Engines: []string{"mysql"},
		Needs:   "mariadbd:mariadb-server",
	},
	{
		Name: "MongoDB", Folder: "mongolock", Schemes: []string{"mongodb", "mongodb+srv"},
		Engines: []string{"mongodb"}, URL: "mongodb://HOST/DATABASE", Page: "mongodb",
		Clients: map[string]string{"go.mongodb.org/mongo-driver/v2": "v2.0.0"},
	},
	{
		Name: "NATS", Folder: "natslock", Schemes: []string{"nats", "nats+tls"}, URL: "nats://HOST:4222", Page: "nats",
		TLS: []string{"nats+tls"}, Engines: []string{"nats"}, Clients: map[string]string{"github.com/nats-io/nats.go": "v1.35.0"},
	},
}

// Of returns the backend that registers a scheme, or the zero value if none does.
func Of(scheme string) Backend {
	for _, b := range All {
		if slices.Contains(b.Schemes, scheme) {
			return b
		}
	}
	return Backend{}
}
