//go:build unix

package main

import (
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	_ "github.com/go-sql-driver/mysql" // package mysqltest needs it
	_ "github.com/jackc/pgx/v5/stdlib" // package pgtest needs it

	"github.com/pawl-go/pawl/internal/backends"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// An engine is a backend on the servers that it needs.
type engine struct {
	title string // in the table
	start func(l *lab) setup
}

// A setup has the command's arguments for an engine.
type setup struct {
	url   string
	args  []string
	fault func() // runs for --failover-cmd; nil for an engine without it
}

// allEngines has the engines that backends.All names.
var allEngines = map[string]engine{
	"memory":   {"memory", func(*lab) setup { return setup{url: "mem:"} }},
	"sqlite":   {"SQLite", func(l *lab) setup { return setup{url: "sqlite:" + filepath.Join(l.TempDir(), "locks.db")} }},
	"redis":    {"Redis, `appendfsync always`", startRedis},
	"cluster":  {"Redis Cluster of 3 masters", startCluster},
	"sentinel": {"Redis behind Sentinel, which may forget", startSentinel},
	"redlock":  {"quorum of 3 Redis servers", startRedlock},
	"etcd":     {"etcd, 3 members", startEtcd},
	"postgres": {"PostgreSQL", startPostgres},
	"mysql":    {"MariaDB", startMySQL},
	"mongodb":  {"FerretDB, for MongoDB", startFerret},
	"nats":     {"NATS, 3 replicas", startNATS},
}

// engineNames returns the names of the engines, in the order of backends.All.
func engineNames() (names []string) {
	for _, b := range backends.All {
		names = append(names, b.Engines...)
	}
	return names
}

// startPostgres makes a server's data, and lets the command start the server. As root,
// the command starts it as the owner of the data. The shell line sends SIGINT on SIGTERM,
// because PostgreSQL would wait for all clients after SIGTERM.
func startPostgres(l *lab) setup {
	s := pgtest.Start(l, "fsync=on")
	s.Database("app")
	s.Stop()
	program := testservers.Command(l, "postgres", "PostgreSQL", "/usr/lib/postgresql/*/bin/postgres")
	asOwner := ""
	if os.Getuid() == 0 {
		asOwner = "setpriv --reuid=postgres --regid=postgres --clear-groups "
	}
	line := fmt.Sprintf(`cd '%[1]s'; trap 'kill -INT $!; wait' TERM; %[2]s'%[3]s' -D '%[1]s/data' -p %[4]s `+
		`-c listen_addresses=127.0.0.1 -c unix_socket_directories='%[1]s' -c max_connections=400 `+
		`-c log_min_messages=fatal & wait`, s.Dir, asOwner, program, s.Port)
	// A request without an answer in time closes its connection. On a busy machine, many
	// clients would need all the time for new connections, so limit their number.
	return setup{url: s.URL("app") + "?sslmode=disable&pool_max_conns=4", args: []string{"--server-cmd", line}}
}

func startMySQL(l *lab) setup {
	s := mysqltest.Start(l)
	s.Kill()
	name := "root"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	_, port, _ := strings.Cut(s.Addr, ":")
	line := fmt.Sprintf("exec mariadbd --no-defaults --user=%s --datadir='%[2]s/data' --tmpdir='%[2]s' --socket='%[2]s/socket' "+
		"--bind-address=127.0.0.1 --port=%[3]s --skip-name-resolve --skip-log-bin --max-connections=1000 "+
		"--innodb-buffer-pool-size=32M --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=1", name, s.Dir, port)
	login := url.UserPassword(mysqltest.User, mysqltest.Password).String()
	return setup{url: "mysql://" + login + "@" + s.Addr + "/" + mysqltest.Database, args: []string{"--server-cmd", line}}
}

func startEtcd(l *lab) setup {
	c := etcdtest.Start(l, 3)
	var members []member
	for _, m := range c.Members {
		members = append(members, member{m.Kill, m.Run, m.Pause, m.Resume})
	}
	return setup{url: c.URL(), fault: disturb(members, func() {})}
}

// startNATS starts servers that do not announce each other to clients. Otherwise the
// clients would bypass the proxies.
func startNATS(l *lab) setup {
	var addrs []string
	var members []member
	for _, s := range natstest.StartCluster(l, 3) {
		addrs = append(addrs, s.Addr)
		members = append(members, member{s.Kill, func() { s.Run() }, s.Pause, s.Resume})
	}
	return setup{url: "nats://" + strings.Join(addrs, ",") + "?replicas=3", fault: disturb(members, func() {})}
}

// startFerret keeps the standard input of FerretDB open, because the server ends with it.
// The server handles one request at a time, so the run needs a lower rate.
func startFerret(l *lab) setup {
	addr := "127.0.0.1:" + servertest.FreePort(l)
	line := fmt.Sprintf("tail -f /dev/null | '%s' -data '%s' -listen %s",
		filepath.Clean(testservers.Build(l, "ferretdb")), l.TempDir(), addr)
	return setup{url: "mongodb://" + addr + "/locks", args: []string{"--server-cmd", line, "--rate", "40", "--ttl", "4s"}}
}
