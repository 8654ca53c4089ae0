package postgreslock_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/postgreslock"
)

// Certificates and authorities are replaced on disk while a lease is held, and while a
// claim waits.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	skipIfShort(t, "a server with settings of its own")
	t.Parallel()
	server := pgtest.Start(t)
	a := certtest.NewAuthority(t)
	identity := certtest.NewIdentity(t, server.Dir, a, "127.0.0.1")
	server.UseTLS(identity)
	certtest.Rotate(t, a, certtest.Server{
		Identity: identity,
		Reload:   func() { server.UseTLS(identity) },
		Open: func(client *certtest.Identity) driver.Driver {
			return openDriver(t, "postgres://certified@"+server.Addr+"/postgres?sslmode=verify-full&sslrootcert="+client.CA+"&sslcert="+client.Cert+"&sslkey="+client.Key)
		},
	})
}

// The password changes, first in the database, and then in the passfile.
func TestAReplacedPasswordIsUsed(t *testing.T) {
	skipIfShort(t, "a server of its own")
	t.Parallel()
	server := pgtest.Start(t)
	file := filepath.Join(t.TempDir(), "passfile")
	write := func(password string) {
		noError(t, os.WriteFile(file, []byte("*:*:*:*:"+password+"\n"), 0o600))
	}
	write("first")
	server.Do("postgres", "CREATE USER secured SUPERUSER PASSWORD 'first'")
	d := openDriver(t, "postgres://secured@"+server.Addr+"/postgres?passfile="+file)
	c := mutex("job")
	gets(t, d, c)
	server.Do("postgres", "ALTER USER secured PASSWORD 'second'")
	server.Hangup()
	eventually(t, "the server refuses the old password", func() bool {
		_, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		if isPermanent(err) {
			t.Fatalf("%v is permanent, but the file may change", err)
		}
		return err != nil && strings.Contains(err.Error(), "look at the user, the password, and the server's pg_hba.conf")
	})
	write("second")
	renews(t, d, c)
	noError(t, os.Remove(file)) // as in a program that replaces the file
	server.Hangup()
	eventually(t, "a new connection has the last password", func() bool {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		if err != nil && strings.Contains(err.Error(), "look at the user, the password") {
			t.Fatal(err)
		}
		return err == nil && answers[0] == nil
	})
	releases(t, d, c)
}

// The BeforeConnect of a caller's pool sets a new password. The driver calls it also for
// the connection that listens, which does not belong to the pool.
func TestTheListenerCallsBeforeConnect(t *testing.T) {
	skipIfShort(t, "it starts servers")
	for name, open := range map[string]func(t *testing.T, config *pgxpool.Config) driver.Driver{
		"pgxpool": func(t *testing.T, config *pgxpool.Config) driver.Driver {
			p := must(pgxpool.NewWithConfig(ctx, config))(t)
			t.Cleanup(p.Close)
			return must(postgreslock.New(p, nil))(t)
		},
		"database/sql": func(t *testing.T, config *pgxpool.Config) driver.Driver {
			db := stdlib.OpenDB(*config.ConnConfig, stdlib.OptionBeforeConnect(config.BeforeConnect))
			t.Cleanup(func() { _ = db.Close() })
			return must(postgreslock.NewDB(db, nil))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkListenerPassword(t, open)
		})
	}
}

func checkListenerPassword(t *testing.T, open func(t *testing.T, config *pgxpool.Config) driver.Driver) {
	t.Helper()
	server := pgtest.Start(t)
	server.Do("postgres", "CREATE USER secured SUPERUSER PASSWORD 'first'")
	config, err := pgxpool.ParseConfig("postgres://secured@" + server.Addr + "/postgres")
	noError(t, err)
	var password atomic.Value
	password.Store("first")
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.Password = password.Load().(string)
		return nil
	}
	opened := open(t, config)
	defer opened.Close()
	d, _ := asDriver(opened, nil)
	gets(t, d, mutex("job"))
	var session, before int
	isListening := func() bool { // in another session than before
		admin, err := pgx.Connect(ctx, server.URL("postgres"))
		if err != nil {
			return false
		}
		defer admin.Close(ctx)
		err = admin.QueryRow(ctx, "SELECT pid FROM pg_stat_activity WHERE usename = 'secured' AND query LIKE 'LISTEN%' AND pid <> $1", before).Scan(&session)
		return err == nil
	}
	isRefused(t, d, queued("job"))
	eventually(t, "the driver listens", isListening)
	before = session
	password.Store("second")
	server.Do("postgres", "ALTER USER secured PASSWORD 'second'")
	server.Hangup()
	eventually(t, "the driver listens again", isListening)
}
