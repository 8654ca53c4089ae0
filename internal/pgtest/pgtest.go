// Package pgtest starts real PostgreSQL servers for tests, and PgBouncers in front of
// them, on free ports and in temporary folders, and stops them when the test ends. If the
// programs are missing, the test is skipped, or fails if PAWL_TEST_REQUIRE is set.
//
// It queries the server through the driver "pgx" of database/sql, which the test has to
// import: this package is in the root's module, which requires no client.
package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

var noError = basictest.NoError

// TB is the part of *testing.T that this package needs.
type TB = servertest.TB

// A Server is one PostgreSQL that trusts all connections from this machine, except those
// of the user "secured", whose password is "s3cr3t%/".
type Server struct {
	endpoint

	args []string
	env  []string // added to the test's environment
}

// An endpoint is a process that accepts connections of PostgreSQL's clients.
type endpoint struct {
	servertest.Process

	Addr, Port string
}

func newEndpoint(tb TB) endpoint {
	tb.Helper()
	port := servertest.FreePort(tb)
	return endpoint{Process: servertest.Process{TB: tb, Dir: newFolder(tb)}, Addr: net.JoinHostPort("127.0.0.1", port), Port: port}
}

// URL returns the URL of a database, for the user postgres.
func (e *endpoint) URL(database string) string {
	return "postgres://postgres@" + e.Addr + "/" + database
}

// Start creates a database cluster, and starts a server with additional settings, such as
// "fsync=on".
func Start(tb TB, settings ...string) *Server {
	tb.Helper()
	s := &Server{endpoint: newEndpoint(tb)}
	data := filepath.Join(s.Dir, "data")
	s.args = []string{"-D", data, "-p", s.Port}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=400", "shared_buffers=32MB",
		"fsync=off", "log_min_messages=fatal", "autovacuum=on", "max_wal_size=256MB",
	}, settings...) {
		s.args = append(s.args, "-c", setting)
	}
	initdb := command(tb, s.Dir, findProgram(tb, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if output, err := initdb.CombinedOutput(); err != nil {
		tb.Fatalf("initdb: %v\n%s", err, output)
	}
	rules := joinLines(
		"local all all trust", // every database, every user
		"host all secured 127.0.0.1/32 scram-sha-256",
		"host all all 127.0.0.1/32 trust", // every database, every user
		"host replication all 127.0.0.1/32 trust",
	)
	noError(tb, os.WriteFile(filepath.Join(data, "pg_hba.conf"), rules, 0o600))
	tb.Cleanup(s.Kill)
	s.Run()
	return s
}

// The servers begin without TLS. By default a client would first ask for TLS, and then
// connect again. Each connection starts a process, the slowest step on a slow machine.
func init() {
	if err := os.Setenv("PGSSLMODE", "disable"); err != nil {
		panic(err)
	}
}

// Database creates a new database, and returns its URL.
func (s *Server) Database(name string) string {
	s.TB.Helper()
	s.Do("postgres", "CREATE DATABASE "+`"`+strings.ReplaceAll(name, `"`, `""`)+`"`)
	return s.URL(name)
}

// Do runs statements in a database, as user postgres.
func (s *Server) Do(database, statements string) {
	s.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer cancel()
	if err := s.exec(ctx, database, statements); err != nil {
		s.TB.Fatalf("%s: %v", statements, err)
	}
}

// exec runs statements over a new connection.
func (s *Server) exec(ctx context.Context, database, statements string) error {
	db, err := sql.Open("pgx", s.URL(database))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statements)
	return err
}

// Run starts the process, for the first time or after Kill, and waits until it answers.
func (s *Server) Run() {
	s.TB.Helper()
	postgres := append(slices.Clone(s.env), findProgram(s.TB, "postgres"))
	s.Launch(command(s.TB, s.Dir, "/usr/bin/env", append(postgres, s.args...)...), nil)
	s.Await(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return s.exec(ctx, "postgres", "SELECT")
	})
}

// Kill kills the server at once, like a crash.
func (s *Server) Kill() { s.End(syscall.SIGQUIT, os.Kill) }

// Stop ends the server without waiting for its clients. If that takes long, for example
// during a recovery, it kills the server.
func (s *Server) Stop() { s.End(syscall.SIGINT, syscall.SIGQUIT, os.Kill) }

// RestartAsStandby restarts the server as a standby in recovery, without a primary.
func (s *Server) RestartAsStandby() {
	s.TB.Helper()
	s.Stop()
	signal := filepath.Join(s.Dir, "data", "standby.signal")
	noError(s.TB, os.WriteFile(signal, nil, 0o600))
	chownToServer(s.TB, signal)
	s.Run()
}

// UseTLS makes the server use TLS with the certificate of an identity in the server's
// folder, and require a certificate from the superuser "certified". Then it ends all
// connections. Another call makes the server read the files again.
func (s *Server) UseTLS(identity *certtest.Identity) {
	s.TB.Helper()
	for _, path := range []string{identity.CA, identity.Cert, identity.Key} {
		chownToServer(s.TB, path)
	}
	rules := filepath.Join(s.Dir, "data", "pg_hba.conf")
	old, err := os.ReadFile(rules)
	noError(s.TB, err)
	if rule := joinLines("hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca"); !bytes.HasPrefix(old, rule) {
		s.Do("postgres", "CREATE ROLE certified SUPERUSER LOGIN")
		noError(s.TB, os.WriteFile(rules, append(rule, old...), 0o600))
	}
	for name, value := range map[string]string{"ssl_ca_file": identity.CA, "ssl_cert_file": identity.Cert, "ssl_key_file": identity.Key, "ssl": "on"} {
		s.Do("postgres", "ALTER SYSTEM SET "+name+" = '"+value+"'")
	}
	s.Do("postgres", "SELECT pg_reload_conf()")
	s.Hangup()
}

// Hangup ends all connections to the server.
func (s *Server) Hangup() {
	s.TB.Helper()
	s.Do("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
}

// findProgram finds a program of the server, which Debian keeps out of the PATH.
func findProgram(tb TB, name string) string {
	tb.Helper()
	return testservers.Command(tb, name, "PostgreSQL and PgBouncer", "/usr/lib/postgresql/*/bin/"+name, "/usr/sbin/"+name)
}

// newFolder creates a temporary folder that the servers' user can reach.
func newFolder(tb TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(tempRoot(tb), "pawl-pg-")
	noError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	chownToServer(tb, dir)
	return dir
}

// joinLines returns the text of a configuration file.
func joinLines(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// StartPooler starts a PgBouncer for a server, in a mode such as "transaction". Databases
// keep their names, and the user is postgres.
func StartPooler(tb TB, to *Server, mode string) *Pooler {
	tb.Helper()
	p := &Pooler{newEndpoint(tb)}
	files := map[string][]byte{
		"users": joinLines(`"postgres" ""`),
		"ini": joinLines("[databases]", "* = host=127.0.0.1 port="+to.Port, "[pgbouncer]", "listen_addr = 127.0.0.1",
			"listen_port = "+p.Port, "unix_socket_dir =", "auth_type = trust", "auth_file = "+filepath.Join(p.Dir, "users"),
			"pool_mode = "+mode, "max_client_conn = 500", "default_pool_size = 20", "ignore_startup_parameters = extra_float_digits"),
	}
	for name, text := range files {
		path := filepath.Join(p.Dir, name)
		noError(tb, os.WriteFile(path, text, 0o600))
		chownToServer(tb, path)
	}
	tb.Cleanup(p.Kill)
	p.Run()
	return p
}

// A Pooler is a PgBouncer.
type Pooler struct{ endpoint }

// Run starts the process, for the first time or after Kill, and waits until it answers.
func (p *Pooler) Run() {
	p.TB.Helper()
	p.Launch(command(p.TB, p.Dir, findProgram(p.TB, "pgbouncer"), filepath.Join(p.Dir, "ini")), nil)
	p.Await(func() error {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.Addr)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}
