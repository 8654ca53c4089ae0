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

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
)

// fails opens an invalid URL, and checks the error.
func fails(t *testing.T, url string, permanent bool, hint string) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, 2*time.Minute) // only a hang takes so long
	defer cancel()
	d, err := concrete(mysqllock.Open(short, url))
	if err == nil {
		_ = d.Close()
	}
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		t.Fatalf("%v; want a driver.Error", err)
	}
	if e.Permanent != permanent || !strings.Contains(e.Hint, hint) {
		t.Errorf("permanent %v, and %v; want %v, and %q in the hint", e.Permanent, err, permanent, hint)
	}
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is in %v", err)
	}
}

func TestWhatKeepsFromOpeningIsSaid(t *testing.T) {
	s := mysqltest.Shared(t)
	// This user may not know whether the database exists.
	fails(t, "mysql:"+s.DSN("nosuch"), true, "rights on this database")
	fails(t, "mysql://pawl:hunter2@"+s.Addr+"/locks", true, "password")
	fails(t, "mysql://pawl:hunter2@127.0.0.1:1/locks", false, "check the server and the network")
	fails(t, "mysql://root@"+s.Addr+"/nosuch", true, "CREATE DATABASE")
	fails(t, "mysql://root@"+s.Addr+"/locks?tls=true", true, "leave out tls")
	fails(t, "mysql://root@nohost.invalid/locks", false, "check the server and the network")
}

// A TTL must be longer than a commit may take.
func TestATTLThatIsTooShortIsRefused(t *testing.T) {
	s := mysqltest.Shared(t)
	url := "mysql:" + s.DSN(s.NewDatabase(t))
	_, err := pawl.Open(ctx, url, &pawl.Options{TTL: 20 * time.Millisecond})
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "50ms or more on mysql") {
		t.Errorf("Open: %v", err)
	}
	c, err := pawl.Open(ctx, url, servertest.Patient)
	noError(t, err)
	defer c.Close()
	if _, err := c.Mutex("job", pawl.WithTTL(49*time.Millisecond)).TryLock(ctx); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("TryLock: %v", err)
	}
}

func TestTheRightsThatAreMissingAreSaid(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	user := "u" + database
	url := "mysql://" + user + ":hunter2@" + s.Addr + "/" + database
	s.Do(t, "CREATE USER "+user+"@'%' IDENTIFIED BY 'hunter2'", "GRANT SELECT, INSERT, UPDATE, DELETE ON "+database+".* TO "+user+"@'%'")
	fails(t, url, true, "pawl schema mysql")
	fails(t, url+"?create=false", true, "pawl schema mysql;")
	fails(t, url+"?create=false&prefix=locks_", true, "pawl schema mysql --prefix locks_;")
	fails(t, url+"?prefix=locks_", true, "pawl schema mysql --prefix locks_")

	// If the tables exist, the user needs no right to make any.
	text, err := mysqllock.Schema(nil)
	noError(t, err)
	for statement := range strings.SplitSeq(text, ";\n") {
		if strings.TrimSpace(statement) != "" {
			exec(t, s.Open(t, database), statement)
		}
	}
	c := mutex("job")
	d := start(t, url)
	gets(t, d, c)
	releases(t, d, c)
	s.Do(t, "REVOKE UPDATE ON "+database+".* FROM "+user+"@'%'")
	d = start(t, url)
	_, err = d.Acquire(ctx, c)
	if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || !strings.Contains(e.Hint, "UPDATE") {
		t.Errorf("without UPDATE: %v", err)
	}
}

// Twenty processes that start at once make the tables once.
func TestTheTablesAreMadeOnceByTwentyAtOnce(t *testing.T) {
	s := mysqltest.Shared(t)
	servertest.OpensTwenty(t, "mysql:"+s.DSN(s.NewDatabase(t)))
}

func TestAServerThatIsReadOnlyIsRefused(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	url := "mysql:" + s.DSN(database)
	d := start(t, url)
	c := mutex("job")
	g := gets(t, d, c)
	t.Cleanup(func() { s.Do(t, "SET GLOBAL read_only = 0") })
	s.Do(t, "SET GLOBAL read_only = 1")
	fails(t, url, false, "primary")
	fails(t, "mysql://root@"+s.Addr+"/"+database, false, "primary") // root may still write
	err := d.Release(ctx, lease(c))
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent || !strings.Contains(e.Hint, "read-only") {
		t.Errorf("Release: %v", err)
	}
	s.Do(t, "SET GLOBAL read_only = 0")
	releases(t, d, c)
	rises(t, g.Fence, gets(t, d, mutex("job")).Fence)
}

// Settings that a caller's pool may have, and that are not safe for locks.
func TestPoolsThatAreNotForLocksAreRefused(t *testing.T) {
	t.Parallel()
	s := mysqltest.Shared(t)
	for parameter, hint := range map[string]string{
		"autocommit=0": "autocommit", "tx_isolation='READ-UNCOMMITTED'": "READ COMMITTED", "sql_select_limit=1": "sql_select_limit",
		"sql_safe_updates=1": "sql_safe_updates", "timestamp=1000000000": "timestamp",
	} {
		_, err := over(t, openWith(t, s, s.NewDatabase(t), parameter), nil).Acquire(ctx, mutex("job"))
		if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || !strings.Contains(e.Hint, hint) {
			t.Errorf("%s: %v", parameter, err)
		}
	}
	standing := mysqltest.Start(t, "--sysdate-is-now")
	fails(t, "mysql:"+standing.DSN(mysqltest.Database), true, "without")
}

func TestOtherPrefixesAreOtherLocks(t *testing.T) {
	_, db, d := fresh(t)
	gets(t, d, mutex("job"))
	gets(t, over(t, db, &mysqllock.Options{Prefix: "billing_"}), mutex("job"))
	isRefused(t, over(t, db, nil), mutex("job"))
}

// A row that cannot be read does not count as a free name, and affects no other name.
func TestADamagedRowIsNoFreeName(t *testing.T) {
	_, db, d := fresh(t)
	for i := range 3 {
		gets(t, d, mutex(fmt.Sprintf("job-%d", i)))
	}
	exec(t, db, "UPDATE pawl_names SET entry = 'x', version = 1 WHERE name = 'job-0'", "UPDATE pawl_names SET entry = '', version = 1 WHERE name = 'job-1'")
	other := over(t, db, nil)
	for i := range 2 {
		for _, d := range []driver.Driver{d, other} {
			_, err := d.Acquire(ctx, mutex(fmt.Sprintf("job-%d", i)))
			if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent {
				t.Errorf("job-%d: %v", i, err)
			}
		}
	}
	isRefused(t, other, mutex("job-2"))
}

// A slow dial fails with context.DeadlineExceeded, like the end of a ctx, but it is not
// the caller's ctx.
func TestAnAddressThatDoesNotAnswerIsSaid(t *testing.T) {
	mysql.RegisterDialContext("nowhere", func(ctx context.Context, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	})
	defer mysql.DeregisterDialContext("nowhere")
	fails(t, "mysql:pawl:hunter2@nowhere(nohost)/locks", false, "check the server and the network")
}

// The driver's own pool is fit whatever settings the server gives to sessions.
func TestAPoolOfOurOwnIsFitWhateverTheServerGivesIt(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	s.Do(t, "SET GLOBAL autocommit = 0, sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL', tx_isolation = 'READ-UNCOMMITTED', tx_read_only = 1, time_zone = '-03:30', "+
		"init_connect = 'SET sql_select_limit = 1, sql_safe_updates = 1, innodb_lock_wait_timeout = 50'")
	d := start(t, "mysql:"+s.DSN(mysqltest.Database))
	var all []driver.LeaseRef
	for i := range 3 {
		c := mutex(fmt.Sprint("job", i))
		gets(t, d, c)
		all = append(all, lease(c))
	}
	answers, err := d.Renew(ctx, all)
	if err = errors.Join(append(answers, err)...); err != nil {
		t.Error(err)
	}
}

func TestAnotherKindOfServerIsRefused(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--version=8.0.11-TiDB-v8.1.0")
	fails(t, "mysql:"+s.DSN(mysqltest.Database), true, "TiDB")
}

// Tables that were made differently are refused: with an engine that locks no rows, or
// with names that a collation compares.
func TestTablesThatAreNotForLocksAreRefused(t *testing.T) {
	s := mysqltest.Shared(t)
	for change, hint := range map[string]string{
		"ALTER TABLE pawl_names ENGINE=MyISAM":                            "ENGINE=InnoDB",
		"ALTER TABLE pawl_lost ENGINE=Aria":                               "ENGINE=InnoDB",
		"ALTER TABLE pawl_names MODIFY name VARCHAR(255) CHARSET utf8mb4": "pawl schema",
	} {
		database := s.NewDatabase(t)
		db := s.Open(t, database)
		gets(t, over(t, db, nil), mutex("job"))
		exec(t, db, change)
		fails(t, "mysql:"+s.DSN(database), true, hint)
	}
}

// A statement that the server ends because of a limit reports which limit.
func TestALimitOnTheTimeOfStatementsIsNamed(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	db := s.Open(t, database)
	gets(t, over(t, db, nil), mutex("job"))
	tx := begin(t, db)
	must(tx.ExecContext(ctx, "SELECT * FROM pawl_names FOR UPDATE"))(t)
	d := over(t, openWith(t, s, database, "max_statement_time=0.1"), nil)
	_, err := d.Acquire(ctx, queued("job"))
	if e, ok := errors.AsType[*driver.Error](err); !ok || !strings.Contains(e.Hint, "max_statement_time") {
		t.Errorf("%v", err)
	}
}

// A node of Galera that lost the others refuses all statements.
func TestANodeOfGaleraWithoutAMajorityIsNamed(t *testing.T) {
	_, db, d := fresh(t)
	c := mutex("job")
	gets(t, d, c)
	exec(t, db, "CREATE TRIGGER alone BEFORE UPDATE ON pawl_names FOR EACH ROW SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047, "+
		"MESSAGE_TEXT = 'WSREP has not yet prepared node for application use'")
	err := d.Release(ctx, lease(c))
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent || !strings.Contains(e.Hint, "Galera") {
		t.Errorf("%v; want an error that passes, and says that this is about Galera", err)
	}
}

// A program starts before its server.
func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	nightly(t, "a server starts again")
	t.Parallel()
	s := mysqltest.Start(t)
	s.Kill()
	servertest.OpensLate(t, "mysql:"+s.DSN(mysqltest.Database), s.Run)
}
