package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// writes makes a write of a check in a transaction: what is refused is rolled back.
func writes(t *testing.T, db *sql.DB, check func(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error) func(string, uint64) error {
	t.Helper()
	return func(resource string, f uint64) error {
		tx := must(db.BeginTx(t.Context(), nil))(t)
		defer tx.Rollback()
		if err := check(t.Context(), tx, resource, f); err != nil {
			return err
		}
		must(tx.ExecContext(t.Context(), "UPDATE work SET n = n + 1"))(t)
		return tx.Commit()
	}
}

// inDatabase is what has to hold on each of them.
func inDatabase(t *testing.T, db *sql.DB, table string, check func(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error) {
	t.Helper()
	must(db.ExecContext(t.Context(), "CREATE TABLE work (n integer)"))(t)
	must(db.ExecContext(t.Context(), "INSERT INTO work VALUES (0)"))(t)
	write := writes(t, db, check)
	err := write("account", 1)
	if err == nil || errors.Is(err, pawl.ErrStale) || !strings.Contains(err.Error(), "pawl_fences") {
		t.Errorf("without the table: %v", err)
	}
	for range 2 { // making it twice is no harm
		must(db.ExecContext(t.Context(), table))(t)
	}
	refuses(t, write)
	rejects(t, write)
	if err := write("largest", 1<<63-1); err != nil {
		t.Errorf("the largest fence: %v", err)
	}
	if err := write("largest", 1<<63-2); !errors.Is(err, pawl.ErrStale) {
		t.Errorf("one below it: %v", err)
	}
	n := 0
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM work").Scan(&n); err != nil || n != 7 {
		t.Errorf("written %d times, %v; want 7", n, err)
	}
}

func TestSQLite(t *testing.T) {
	db := must(sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db")))(t)
	defer db.Close()
	inDatabase(t, db, fence.SQLiteTable, fence.CheckSQLite)
}

func TestMySQL(t *testing.T) {
	s := mysqltest.Start(t)
	inDatabase(t, s.Open(t, s.NewDatabase(t)), fence.MySQLTable, fence.CheckMySQL)
}

func TestPostgres(t *testing.T) {
	s := pgtest.Start(t)
	db := must(sql.Open("pgx", s.Database("app")))(t)
	defer db.Close()
	inDatabase(t, db, fence.PostgresTable, func(ctx context.Context, tx *sql.Tx, resource string, f uint64) error {
		return fence.CheckPostgres(ctx, fence.Query(tx.QueryRowContext), resource, f)
	})

	// The same through pgx itself, which is a transaction of another type.
	c := must(pgx.Connect(t.Context(), s.URL("app")))(t)
	defer c.Close(t.Context())
	must(c.Exec(t.Context(), "TRUNCATE pawl_fences"))(t)
	refuses(t, func(resource string, f uint64) error {
		tx := must(c.Begin(t.Context()))(t)
		defer tx.Rollback(t.Context())
		if err := fence.CheckPostgres(t.Context(), fence.Query(tx.QueryRow), resource, f); err != nil {
			return err
		}
		return tx.Commit(t.Context())
	})
}

// A write with a lower fence that comes while one with a higher fence is under way waits
// for it, and is refused then.
func TestWritersToOneResourceWaitForEachOther(t *testing.T) {
	s := pgtest.Start(t)
	db := must(sql.Open("pgx", s.Database("app")))(t)
	defer db.Close()
	must(db.ExecContext(t.Context(), fence.PostgresTable))(t)
	check := func(tx *sql.Tx, f uint64) error {
		return fence.CheckPostgres(t.Context(), fence.Query(tx.QueryRowContext), "account", f)
	}
	high := must(db.BeginTx(t.Context(), nil))(t)
	if err := check(high, 7); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error)
	go func() {
		low, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			defer low.Rollback()
			err = check(low, 5)
		}
		answer <- err
	}()
	for waiting := 0; waiting == 0; { // until the server says that it waits
		select {
		case err := <-answer:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := high.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, pawl.ErrStale) {
		t.Errorf("the lower one: %v", err)
	}
}

func TestRedis(t *testing.T) {
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Start(t).Addr})
	defer c.Close()
	script := goredis.NewScript(fence.RedisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`))
	write := func(resource string, f uint64) error {
		_, err := script.Run(t.Context(), c, []string{"fence:" + resource, "balance:" + resource}, f, 10).Result()
		return fence.RedisError(err, resource, f)
	}
	refuses(t, write)
	if n := must(c.Get(t.Context(), "balance:account").Int())(t); n != 50 {
		t.Errorf("the balance is %d, want 50", n)
	}
	for _, bad := range []any{0, -1, "one", "", "nan", "inf", "0x7", "1e3", "9007199254740993"} {
		_, err := script.Run(t.Context(), c, []string{"fence:x", "balance:x"}, bad, 10).Result()
		if err == nil || errors.Is(fence.RedisError(err, "x", 1), pawl.ErrStale) || !strings.Contains(err.Error(), "INVALIDFENCE") {
			t.Errorf("fence %v: %v", bad, err)
		}
	}
	if n := c.Exists(t.Context(), "balance:x").Val(); n != 0 {
		t.Error("a write without a fence was done")
	}
	if fence.RedisError(nil, "x", 1) != nil || !errors.Is(fence.RedisError(goredis.Nil, "x", 1), goredis.Nil) {
		t.Error("other answers are changed")
	}
}
