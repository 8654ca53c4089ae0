// Package mysqltest starts real MariaDB servers for tests, on free ports and in temporary
// folders, and stops them when the test ends. If mariadbd is missing, the test is
// skipped, or fails if PAWL_TEST_REQUIRE is set.
//
// It queries the server through the driver "mysql" of database/sql, which the test has to
// import: this package is in the root's module, which requires no client.
package mysqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// TB is the part of *testing.T that this package needs.
type TB = servertest.TB

// User has all rights in Database and in the databases of NewDatabase, but in no other.
const (
	User     = "pawl"
	Password = "s3cret/@:?word"
	Database = "locks"
)

// A Server is one MariaDB server process.
type Server struct {
	servertest.Process

	Addr string

	args []string
	env  []string // added to the test's environment
}

// Start starts a mariadbd with additional arguments, and waits until it answers.
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, args)
	s.Run()
	return s
}

func newServer(tb TB, args []string) *Server {
	tb.Helper()
	dir := newFolder(tb)
	installData(tb, dir)
	port := servertest.FreePort(tb)
	s := &Server{Process: servertest.Process{TB: tb, Dir: dir}, Addr: "127.0.0.1:" + port}
	s.args = slices.Concat([]string{
		"--no-defaults", "--user=" + serverUser(), "--datadir=" + filepath.Join(dir, "data"),
		"--tmpdir=" + dir, // otherwise a starting server would delete the files of another one
		"--socket=" + filepath.Join(dir, "socket"), "--bind-address=127.0.0.1", "--port=" + port,
		"--init-file=" + filepath.Join(dir, "init.sql"), "--skip-name-resolve", "--skip-log-bin",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M", "--max-connections=1000",
		"--innodb-flush-log-at-trx-commit=2", // no test crashes the machine
	}, args)
	tb.Cleanup(s.Kill)
	return s
}

// newFolder creates a temporary folder with a short name.
func newFolder(tb TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(tempRoot(), "pawl-mysql")
	basictest.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// tempRoot returns the folder for temporary folders. Instead of a folder with a long name
// it returns /tmp, because the name of a socket has at most 107 bytes.
func tempRoot() string {
	if dir := os.TempDir(); len(dir) <= 60 {
		return dir
	}
	return "/tmp"
}

// serverUser returns the user of the server. mariadbd requires --user to run as root.
func serverUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}

// template creates a data folder for the first start of a server, and returns its path.
// Creating one takes some seconds, but copying it is quick.
var template = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-mysql-new")
	if err != nil {
		return "", err
	}
	templateDir.Store(&dir)
	data := filepath.Join(dir, "data")
	cmd := exec.Command("mariadb-install-db", "--no-defaults", "--user="+serverUser(), "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=16M")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // it starts a server, see --tmpdir above
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mariadb-install-db: %w\n%s", err, output)
	}
	return data, nil
})

// templateDir is the folder that template created, or nil.
var templateDir atomic.Pointer[string]

func installData(tb TB, dir string) {
	tb.Helper()
	for _, command := range []string{"mariadbd", "mariadb-install-db"} {
		testservers.Command(tb, command, "mariadb-server")
	}
	from, err := template()
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "data"), os.DirFS(from))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "init.sql"), []byte(fmt.Sprintf(
			"CREATE DATABASE IF NOT EXISTS %s;\nCREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON %s.* TO '%s'@'%%';\n",
			Database, User, Password, Database, User)), 0o600)
	}
	basictest.NoError(tb, err)
}

// Run starts the process, for the first time or after Kill.
func (s *Server) Run() {
	s.TB.Helper()
	cmd := exec.Command("mariadbd", s.args...)
	cmd.Env = append(os.Environ(), s.env...)
	s.Launch(cmd, nil)
	s.Await(s.ping)
}

func (s *Server) ping() error {
	db, err := sql.Open("mysql", s.rootDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	var n int
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return db.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.db WHERE User = '"+User+"'").Scan(&n)
}

func (s *Server) rootDSN() string {
	return "root@unix(" + filepath.Join(s.Dir, "socket") + ")/?timeout=5s"
}

// Root returns a pool of connections of the superuser.
func (s *Server) Root(tb TB) *sql.DB {
	tb.Helper()
	return OpenDSN(tb, s.rootDSN())
}

// Do runs statements as root.
func (s *Server) Do(tb TB, statements ...string) {
	tb.Helper()
	servertest.Exec(tb, s.Root(tb), statements...)
}

// NewDatabase creates a database for one test, in which User has all rights.
func (s *Server) NewDatabase(tb TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", databaseCount.Add(1))
	s.Do(tb, "CREATE DATABASE "+name, fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'%%'", name, User))
	return name
}

var databaseCount atomic.Int64 // for unique names

// DSN returns the DSN of go-sql-driver for a database of the server, as User.
func (s *Server) DSN(database string) string { return DSN(s.Addr, database) }

// DSN returns the DSN of go-sql-driver for a database at an address, as User.
func DSN(addr, database string) string {
	return User + ":" + Password + "@tcp(" + addr + ")/" + database
}

// Open opens a pool of connections to a database, as User.
func (s *Server) Open(tb TB, database string) *sql.DB {
	tb.Helper()
	return OpenDSN(tb, s.DSN(database))
}

// OpenDSN opens a pool of connections to a DSN.
func OpenDSN(tb TB, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("mysql", dsn)
	basictest.NoError(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

var shared servertest.Shared[*Server]

// Shared returns a server that runs until Stop. Each test creates its own database on it.
func Shared(tb TB) *Server {
	tb.Helper()
	return shared.Get(tb, func(tb TB) *Server { return Start(tb) })
}

// Stop ends the shared server, and removes the template. TestMain calls it.
func Stop() {
	shared.Stop()
	if dir := templateDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}
