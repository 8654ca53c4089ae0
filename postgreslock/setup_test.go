package postgreslock_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

// Twenty programs that start at once on an empty database make one set of tables, and
// one of them gets the lock.
func TestTwentyDriversCreateTheTablesAtOnce(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	servertest.OpensTwenty(t, url)
}

func TestTheColumnsShowHolderFenceAndEnd(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("report:nightly")
	g := gets(t, d, c)
	var holders string
	var fence uint64
	var until *time.Time
	read := func() {
		t.Helper()
		row := conn(t, url).QueryRow(ctx, "SELECT holders, fence, until FROM pawl.locks WHERE name = 'report:nightly'")
		noError(t, row.Scan(&holders, &fence, &until))
	}
	if read(); holders != "host-1:4242" || fence != g.Fence || until == nil || time.Until(*until) < 20*time.Second {
		t.Errorf("a held name: %q, %d, %v; want the holder, fence %d and its end", holders, fence, until, g.Fence)
	}
	releases(t, d, c)
	if read(); holders != "" || fence != g.Fence || until != nil {
		t.Errorf("a released name: %q, %d, %v; want no holder, fence %d and no end", holders, fence, until, g.Fence)
	}
}

// If an administrator has run what Schema returns, the user of the locks needs no right
// to create anything. Otherwise the error says what to do.
func TestTheTablesMayBeCreatedBeforehand(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	admin := conn(t, url)
	exec(t, admin, "CREATE USER modest")
	modest := "postgres://modest@" + server.Addr + "/" + name
	for parameters, command := range map[string]string{
		"":                           "`pawl schema postgres`",
		"?schema=billing":            "`pawl schema postgres --schema billing`",
		"?schema=public&prefix=a_":   "`pawl schema postgres --schema public --prefix a_`",
		"?schema=O%27Reilly&prefix=": `--schema 'O'\''Reilly'` + "`",
	} {
		failsToOpen(t, modest+parameters, command)
	}
	text, err := postgreslock.Schema(nil)
	noError(t, err)
	exec(t, admin, text, text) // the second run changes nothing
	exec(t, admin, "GRANT USAGE ON SCHEMA pawl TO modest")
	failsToOpen(t, modest, "the user lacks a right")
	exec(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO modest")
	d := openDriver(t, modest)
	c := mutex("job")
	gets(t, d, c)
	for range 20 { // a long queue
		isRefused(t, d, queued("job"))
	}
	releases(t, d, c)
}

func TestAStandbyIsRefused(t *testing.T) {
	t.Parallel()
	failsToOpen(t, standby(t).URL("postgres"), "recovery")
}

// The error has the problem and a hint, and not the password.
func TestErrorsOfOpenHaveAHint(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	exec(t, conn(t, url), "CREATE USER secured PASSWORD 's3cr3t%/'")
	exec(t, conn(t, url), "GRANT ALL ON DATABASE "+pgx.Identifier{name}.Sanitize()+" TO secured")
	openDriver(t, "postgres://secured:s3cr3t%25%2F@"+server.Addr+"/"+name)
	for badURL, want := range map[string]string{
		"postgres://secured:hunter2@" + server.Addr + "/" + name:                   "pg_hba.conf",
		"postgres://postgres:hunter2@" + server.Addr + "/nowhere":                  "the database does not exist",
		"postgres://postgres:hunter2@127.0.0.1:1/x":                                "check the server",
		"postgres://postgres:hunter2@" + server.Addr + "/x?nonsense=1":             "unknown parameter",
		"postgres://postgres:hunter2@" + server.Addr + "/x?retention=1s":           "retention",
		"postgres://postgres:hunter2@" + server.Addr + "/x?retention=soon":         "retention",
		"postgres://postgres:hunter2@" + server.Addr + "/x?push=perhaps":           "push",
		"postgres://postgres:hunter2@" + server.Addr + "/x?lock_timeout=5s":        "would bound no step",
		"postgres://postgres:hunter2@" + server.Addr + "/x?sslmode=hunter2":        "cannot be read",
		"postgres://postgres:hunter2@" + server.Addr + "/x?pool_max_conns=hunter2": "cannot be read",
		"postgres://postgres:hunter2@" + server.Addr + "/x?schema=a%00b":           "schema",
		"postgres:hunter2": "slash",
	} {
		shortCtx, cancel := context.WithTimeout(ctx, 2*time.Minute) // only a hang takes so long
		_, err := driver.Open(shortCtx, badURL)
		cancel()
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), want) && want != "slash" {
			t.Errorf("%s: %v; want %s, and no password", badURL, err, want)
		}
	}
}

// A server that trusts all clients accepts any password. With require_auth in its URL the
// driver refuses such a server.
func TestRequireAuthRefusesAServerWithoutPasswords(t *testing.T) {
	t.Parallel()
	server, _, name := freshDatabase(t)
	withPassword := "postgres://postgres:hunter2@" + server.Addr + "/" + name
	openDriver(t, withPassword)
	if _, err := postgreslock.Open(ctx, withPassword+"?require_auth=scram-sha-256"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v; want an error without the password", err)
	}
}

// If the server or PgBouncer itself does not know the database, PgBouncer returns an
// error of its own. The driver adds a hint.
func TestADatabaseUnknownToThePoolerHasAHint(t *testing.T) {
	t.Parallel()
	server, _, name := freshDatabase(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	const hint = "the database does not exist behind the pooler"
	failsToOpen(t, pooler.URL("nowhere"), hint) // unknown to the server
	ini := filepath.Join(pooler.Dir, "ini")
	text, err := os.ReadFile(ini)
	noError(t, err)
	noError(t, os.WriteFile(ini, []byte(strings.Replace(string(text), "* =", name+" =", 1)), 0o600))
	pooler.Kill()
	pooler.Run()
	openDriver(t, pooler.URL(name))
	failsToOpen(t, pooler.URL("nowhere"), hint) // unknown to the pooler
}

// failsToOpen checks that Open of a URL returns a permanent error with this text.
func failsToOpen(t testing.TB, url, text string) {
	t.Helper()
	if _, err := postgreslock.Open(ctx, url); !isPermanent(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; want a permanent error with %q", url, err, text)
	}
}

func isPermanent(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Permanent
}

// Of several hosts, each with its own port, the driver finds the one that accepts writes.
func TestTheDriverFindsThePrimaryAmongSeveralHosts(t *testing.T) {
	t.Parallel()
	server, _, _ := freshDatabase(t)
	standby := standby(t)
	for _, hosts := range []string{
		"127.0.0.1:" + standby.Port + ",127.0.0.1:" + server.Port, // the last one has a port
		"127.0.0.1:" + server.Port + ",127.0.0.1",
		"[::1]:1,127.0.0.1:" + server.Port,
	} {
		gets(t, openDriver(t, "postgres://postgres@"+hosts+"/postgres?schema=several&target_session_attrs=read-write"), mutex(hosts))
	}
}

// After an administrator has revoked a right, errors name it, and the name is not free.
func TestErrorsNameARevokedRight(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	admin := conn(t, url)
	text, err := postgreslock.Schema(nil)
	noError(t, err)
	exec(t, admin, text, "CREATE USER fallen", "GRANT USAGE ON SCHEMA pawl TO fallen",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO fallen")
	d := openDriver(t, "postgres://fallen@"+server.Addr+"/"+name)
	c := mutex("job")
	gets(t, d, c)
	exec(t, admin, "REVOKE UPDATE ON pawl.locks FROM fallen")
	err = d.Release(ctx, lease(c))
	wantDriverError(t, err, true, "UPDATE")
	exec(t, admin, "GRANT UPDATE ON pawl.locks TO fallen")
	releases(t, d, c)
}

// While one request checks the server and creates the tables, other requests wait, but no
// longer than their ctx.
func TestTheSetUpDelaysNoRequestPastItsCtx(t *testing.T) {
	t.Parallel()
	server, _, name := freshDatabase(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := driverOver(t, poolOf(t, "postgres://postgres@"+proxy.Addr+"/"+name+"?sslmode=disable", 4), nil)
	servertest.FirstCheck(t, d, proxy, "pg_is_in_recovery")
}

// An Open whose ctx ends names the server that it waited for.
func TestAnOpenThatTimesOutNamesTheServer(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	noError(t, err)
	defer silent.Close()
	shortCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = postgreslock.Open(shortCtx, "postgres://u:hunter2@"+silent.Addr().String()+"/x?sslmode=disable")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v; want the end of the ctx, and the server", err)
	}
}

// A program may start before its server.
func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	server.Kill()
	servertest.OpensWhenServerStarts(t, server.URL("postgres"), server.Run)
}
