package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
)

// failsToOpen checks that Open of a URL returns an error with this hint.
func failsToOpen(t *testing.T, url string, permanent bool, hint string) {
	t.Helper()
	shortCtx, cancel := context.WithTimeout(ctx, 2*time.Minute) // only a hang takes so long
	defer cancel()
	d, err := asDriver(mysqllock.Open(shortCtx, url))
	if err == nil {
		_ = d.Close()
	}
	wantDriverError(t, err, permanent, hint)
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is in %v", err)
	}
}

func TestErrorsOfOpenHaveAHint(t *testing.T) {
	s := mysqltest.Shared(t)
	// The server does not reveal to this user whether the database exists.
	failsToOpen(t, "mysql:"+s.DSN("nosuch"), true, "rights on this database")
	failsToOpen(t, "mysql://pawl:hunter2@"+s.Addr+"/locks", true, "password")
	failsToOpen(t, "mysql://pawl:hunter2@127.0.0.1:1/locks", false, "check the server and the network")
	failsToOpen(t, "mysql://root@"+s.Addr+"/nosuch", true, "CREATE DATABASE")
	failsToOpen(t, "mysql://root@"+s.Addr+"/locks?tls=true", true, "leave out tls")
	failsToOpen(t, "mysql://root@nohost.invalid/locks", false, "check the server and the network")
}

func TestErrorsNameMissingRights(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	user := "u" + database
	url := "mysql://" + user + ":hunter2@" + s.Addr + "/" + database
	s.Do(t, "CREATE USER "+user+"@'%' IDENTIFIED BY 'hunter2'", "GRANT SELECT, INSERT, UPDATE, DELETE ON "+database+".* TO "+user+"@'%'")
	failsToOpen(t, url, true, "pawl schema mysql")
	failsToOpen(t, url+"?create=false", true, "pawl schema mysql;")
	failsToOpen(t, url+"?create=false&prefix=locks_", true, "pawl schema mysql --prefix locks_;")
	failsToOpen(t, url+"?prefix=locks_", true, "pawl schema mysql --prefix locks_")

	// If the tables exist, the user needs no right to create them.
	text, err := mysqllock.Schema(nil)
	noError(t, err)
	for statement := range strings.SplitSeq(text, ";\n") {
		if strings.TrimSpace(statement) != "" {
			exec(t, s.Open(t, database), statement)
		}
	}
	c := mutex("job")
	d := openDriver(t, url)
	gets(t, d, c)
	releases(t, d, c)
	s.Do(t, "REVOKE UPDATE ON "+database+".* FROM "+user+"@'%'")
	d = openDriver(t, url)
	_, err = d.Acquire(ctx, c)
	wantDriverError(t, err, true, "UPDATE")
}

func TestTwentyDriversCreateTheTables(t *testing.T) {
	s := mysqltest.Shared(t)
	servertest.OpensTwenty(t, "mysql:"+s.DSN(s.NewDatabase(t)))
}

func TestAServerThatIsReadOnlyIsRefused(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	url := "mysql:" + s.DSN(database)
	d := openDriver(t, url)
	c := mutex("job")
	g := gets(t, d, c)
	t.Cleanup(func() { s.Do(t, "SET GLOBAL read_only = 0") })
	s.Do(t, "SET GLOBAL read_only = 1")
	failsToOpen(t, url, false, "primary")
	failsToOpen(t, "mysql://root@"+s.Addr+"/"+database, false, "primary") // root may still write
	err := d.Release(ctx, lease(c))
	wantDriverError(t, err, false, "read-only")
	s.Do(t, "SET GLOBAL read_only = 0")
	releases(t, d, c)
	wantHigherFence(t, g.Fence, gets(t, d, mutex("job")).Fence)
}

// A caller's pool may have settings that are not safe for locks.
func TestUnsafePoolsAreRefused(t *testing.T) {
	t.Parallel()
	s := mysqltest.Shared(t)
	for parameter, hint := range map[string]string{
		"autocommit=0": "autocommit", "tx_isolation='READ-UNCOMMITTED'": "READ COMMITTED", "sql_select_limit=1": "sql_select_limit",
		"sql_safe_updates=1": "sql_safe_updates", "timestamp=1000000000": "timestamp",
	} {
		_, err := driverOver(t, openWith(t, s, s.NewDatabase(t), parameter), nil).Acquire(ctx, mutex("job"))
		wantDriverError(t, err, true, hint)
	}
	frozenClock := mysqltest.Start(t, "--sysdate-is-now")
	failsToOpen(t, "mysql:"+frozenClock.DSN(mysqltest.Database), true, "start the server without it")
}

// A damaged row does not count as a free name, and affects no other name.
func TestADamagedRowIsNoFreeName(t *testing.T) {
	for _, value := range []string{"x", ""} {
		_, db, d := freshDatabase(t)
		servertest.Damaged(t, d, driverOver(t, db, nil), "", func(name string) {
			exec(t, db, "UPDATE pawl_names SET entry = '"+value+"', version = 1 WHERE name = '"+name+"'")
		})
	}
}

// A slow dial returns context.DeadlineExceeded although the caller's ctx has not ended.
func TestASlowDialHasAHint(t *testing.T) {
	mysql.RegisterDialContext("nowhere", func(ctx context.Context, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	})
	defer mysql.DeregisterDialContext("nowhere")
	failsToOpen(t, "mysql:pawl:hunter2@nowhere(nohost)/locks", false, "check the server and the network")
}

func TestOwnPoolsOverrideTheSettingsOfTheServer(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	s.Do(t, "SET GLOBAL autocommit = 0, sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL', tx_isolation = 'READ-UNCOMMITTED', tx_read_only = 1, time_zone = '-03:30', "+
		"init_connect = 'SET sql_select_limit = 1, sql_safe_updates = 1, innodb_lock_wait_timeout = 50'")
	d := openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	var all []driver.LeaseRef
	for i := range 3 {
		c := mutex(fmt.Sprint("job", i))
		gets(t, d, c)
		all = append(all, lease(c))
	}
	answers, err := d.Renew(ctx, all)
	noError(t, errors.Join(append(answers, err)...))
}

func TestAnotherKindOfServerIsRefused(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--version=8.0.11-TiDB-v8.1.0")
	failsToOpen(t, "mysql:"+s.DSN(mysqltest.Database), true, "TiDB")
}

// The driver refuses tables of an engine that locks no rows, and tables whose names are
// compared by a collation, and not by bytes.
func TestUnsuitableTablesAreRefused(t *testing.T) {
	s := mysqltest.Shared(t)
	for change, hint := range map[string]string{
		"ALTER TABLE pawl_names ENGINE=MyISAM":                            "ENGINE=InnoDB",
		"ALTER TABLE pawl_lost ENGINE=Aria":                               "ENGINE=InnoDB",
		"ALTER TABLE pawl_names MODIFY name VARCHAR(255) CHARSET utf8mb4": "pawl schema",
	} {
		database := s.NewDatabase(t)
		db := s.Open(t, database)
		gets(t, driverOver(t, db, nil), mutex("job"))
		exec(t, db, change)
		failsToOpen(t, "mysql:"+s.DSN(database), true, hint)
	}
}

func TestErrorsNameATimeLimitOfStatements(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	db := s.Open(t, database)
	gets(t, driverOver(t, db, nil), mutex("job"))
	tx := begin(t, db)
	must(tx.ExecContext(ctx, "SELECT * FROM pawl_names FOR UPDATE"))(t)
	d := driverOver(t, openWith(t, s, database, "max_statement_time=0.1"), nil)
	_, err := d.Acquire(ctx, queued("job"))
	wantDriverError(t, err, false, "max_statement_time")
}

// A program may start before its server.
func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	skipIfShort(t, "it restarts a server")
	t.Parallel()
	s := mysqltest.Start(t)
	s.Kill()
	servertest.OpensWhenServerStarts(t, "mysql:"+s.DSN(mysqltest.Database), s.Run)
}

// The first call checks the server. Other calls wait for this check only until their own
// ctx ends.
func TestTheFirstCheckDelaysNoRequestPastItsCtx(t *testing.T) {
	s, db, _ := freshDatabase(t)
	proxy := servertest.StartProxy(t, s.Addr)
	slow := mysqltest.OpenDSN(t, mysqltest.DSN(proxy.Addr, databaseOf(t, db)))
	servertest.FirstCheck(t, driverOver(t, slow, nil), proxy, "SHOW SESSION VARIABLES")
}
