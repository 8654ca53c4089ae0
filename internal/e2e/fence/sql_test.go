package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// writer returns a function that checks a fence and writes, in one transaction.
func writer(t *testing.T, db *sql.DB, check check) func(string, uint64) error {
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

type check = func(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error

// testDatabase tests the checks of one database.
func testDatabase(t *testing.T, db *sql.DB, table string, check check, reader func(resource string, fence uint64) error) {
	t.Helper()
	must(db.ExecContext(t.Context(), "CREATE TABLE work (n integer)"))(t)
	must(db.ExecContext(t.Context(), "INSERT INTO work VALUES (0)"))(t)
	write := writer(t, db, check)
	for _, wrongTable := range []string{"", "CREATE TABLE pawl_fences (resource varchar(255), fence bigint)"} {
		if wrongTable != "" {
			must(db.ExecContext(t.Context(), wrongTable))(t)
		}
		for _, err := range []error{write("account", 1), reader("account", 1)} {
			failed, ok := errors.AsType[*pawl.BackendError](err)
			if !ok || !failed.Permanent || failed.Name != "account" || !strings.Contains(failed.Hint, "Table of package fence") || errors.Is(err, pawl.ErrStale) {
				t.Errorf("without the right table: %v", err)
			}
		}
	}
	must(db.ExecContext(t.Context(), "DROP TABLE pawl_fences"))(t)
	for range 2 { // the second creation changes nothing
		must(db.ExecContext(t.Context(), table))(t)
	}
	fencetest.ChecksStaleWrites(t, write)
	fencetest.ChecksArguments(t, write)
	fencetest.ChecksReadersAndWriters(t, write, reader)
	if err := write("largest", 1<<63-1); err != nil {
		t.Errorf("the largest fence: %v", err)
	}
	if err := write("largest", 1<<63-2); !errors.Is(err, pawl.ErrStale) {
		t.Errorf("a fence below the largest: %v", err)
	}
	n := 0
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM work").Scan(&n); err != nil || n != 11 {
		t.Errorf("written %d times, %v; want 11", n, err)
	}
}

// A countingDB counts the statements of a check.
type countingDB struct {
	*sql.DB
	statements int
}

func (c *countingDB) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.statements++
	return c.DB.QueryRowContext(ctx, query, args...)
}

func (c *countingDB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.statements++
	return c.DB.ExecContext(ctx, query, args...)
}

// wantOneStatement tests that a check sends one statement.
func (c *countingDB) wantOneStatement(t *testing.T, check func(resource string, f uint64) error) {
	t.Helper()
	for _, f := range []uint64{5, 1 << 40, 1 << 40, 1} { // for a writer the last fence is stale
		before := c.statements
		if err := check("counted", f); err != nil && !errors.Is(err, pawl.ErrStale) {
			t.Errorf("fence %d: %v", f, err)
		}
		if n := c.statements - before; n != 1 {
			t.Errorf("fence %d takes %d statements, want 1", f, n)
		}
	}
}

func TestFencesInSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	db := must(sql.Open("sqlite", file))(t)
	defer db.Close()
	c := &countingDB{DB: db}
	read := func(resource string, f uint64) error { return fence.CheckSQLiteReader(t.Context(), c, resource, f) }
	testDatabase(t, db, fence.SQLiteTable, fence.CheckSQLite, read)
	c.wantOneStatement(t, read)
}

func TestFencesInMySQL(t *testing.T) {
	s := mysqltest.Shared(t)
	name := s.NewDatabase(t)
	db := s.Open(t, name)
	c := &countingDB{DB: db}
	read := func(resource string, f uint64) error { return fence.CheckMySQLReader(t.Context(), c, resource, f) }
	testDatabase(t, db, fence.MySQLTable, fence.CheckMySQL, read)
	c.wantOneStatement(t, read)
}

func checkPostgres(ctx context.Context, tx *sql.Tx, resource string, f uint64) error {
	return fence.CheckPostgres(ctx, fence.Query(tx.QueryRowContext), resource, f)
}

func TestFencesInPostgres(t *testing.T) {
	dsn := postgres(t)
	db := must(sql.Open("pgx", dsn))(t)
	defer db.Close()
	testDatabase(t, db, fence.PostgresTable, checkPostgres, func(resource string, f uint64) error {
		return fence.CheckPostgresReader(t.Context(), fence.Query(db.QueryRowContext), resource, f)
	})
	counts := &countingDB{DB: db}
	counts.wantOneStatement(t, func(resource string, f uint64) error {
		return fence.CheckPostgres(t.Context(), fence.Query(counts.QueryRowContext), resource, f)
	})

	// The same with pgx itself, which has another transaction type.
	c := must(pgx.Connect(t.Context(), dsn))(t)
	defer c.Close(t.Context())
	must(c.Exec(t.Context(), "TRUNCATE pawl_fences"))(t)
	fencetest.ChecksStaleWrites(t, func(resource string, f uint64) error {
		tx := must(c.Begin(t.Context()))(t)
		defer tx.Rollback(t.Context())
		if err := fence.CheckPostgres(t.Context(), fence.Query(tx.QueryRow), resource, f); err != nil {
			return err
		}
		return tx.Commit(t.Context())
	})
}

// A session with another encoding writes to the same resource.
func TestPostgresInAnotherEncoding(t *testing.T) {
	dsn := postgres(t)
	db := must(sql.Open("pgx", dsn))(t)
	defer db.Close()
	must(db.ExecContext(t.Context(), fence.PostgresTable))(t)
	// PostgreSQL prefers this function to its own, unless a statement names the schema.
	must(db.ExecContext(t.Context(), "CREATE FUNCTION convert_from(bytea, text) RETURNS text LANGUAGE sql AS $$SELECT 'one'$$"))(t)
	for _, mode := range []string{"cache_statement", "exec"} {
		other := must(sql.Open("pgx", dsn+"?default_query_exec_mode="+mode+"&options=-cclient_encoding%3DLATIN1"))(t)
		defer other.Close()
		query, resource := fence.Query(other.QueryRowContext), "größe "+mode
		noError(t, fence.CheckPostgres(t.Context(), fence.Query(db.QueryRowContext), resource, 9))
		for _, f := range []uint64{5, 10} {
			write := fence.CheckPostgres(t.Context(), query, resource, f)
			read := fence.CheckPostgresReader(t.Context(), query, resource, f)
			if errors.Is(write, pawl.ErrStale) != (f == 5) || errors.Is(read, pawl.ErrStale) != (f == 5) {
				t.Errorf("%s: %d after 9: %v, %v", mode, f, write, read)
			}
		}
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pawl_fences WHERE resource = $1", resource).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows of %q, %v", n, resource, err)
		}
	}
}

// A write with a lower fence arrives while a transaction with a higher fence is open. Its
// check waits for that transaction, and then refuses the fence.
func TestWritersToOneResourceWaitForEachOther(t *testing.T) {
	db := must(sql.Open("pgx", postgres(t)))(t)
	defer db.Close()
	must(db.ExecContext(t.Context(), fence.PostgresTable))(t)
	check := func(tx *sql.Tx, f uint64) error {
		return fence.CheckPostgres(t.Context(), fence.Query(tx.QueryRowContext), "account", f)
	}
	high := must(db.BeginTx(t.Context(), nil))(t)
	noError(t, check(high, 7))
	answer := make(chan error)
	go func() {
		low, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			defer low.Rollback()
			err = check(low, 5)
		}
		answer <- err
	}()
	for waiting := 0; waiting == 0; { // until the server reports that the check waits
		select {
		case err := <-answer:
			t.Fatalf("the check of the lower fence did not wait: %v", err)
		default:
		}
		noError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting))
	}
	noError(t, high.Commit())
	if err := <-answer; !errors.Is(err, pawl.ErrStale) {
		t.Errorf("the check of the lower fence: %v", err)
	}
}

// Sessions that convert the client's text write to the same resource.
func TestMySQLInAnotherEncoding(t *testing.T) {
	s := mysqltest.Shared(t)
	name := s.NewDatabase(t)
	db := s.Open(t, name)
	must(db.ExecContext(t.Context(), fence.MySQLTable))(t)
	for _, variables := range []string{
		"charset=latin1", "charset=latin1&collation_connection=utf8mb4_general_ci", "character_set_client=cp932",
		"charset=latin1&collation_connection=utf8mb4_general_ci&interpolateParams=true&sql_mode='NO_BACKSLASH_ESCAPES'",
	} {
		other := mysqltest.OpenDSN(t, s.DSN(name)+"?"+strings.ReplaceAll(variables, "'", "%27"))
		resource := "größe 表 " + variables
		write := func(db *sql.DB, f uint64) error {
			tx := must(db.BeginTx(t.Context(), nil))(t)
			defer tx.Rollback()
			return errors.Join(fence.CheckMySQL(t.Context(), tx, resource, f), tx.Commit())
		}
		noError(t, write(db, 9))
		for _, f := range []uint64{5, 10} {
			written, read := write(other, f), fence.CheckMySQLReader(t.Context(), other, resource, f)
			if errors.Is(written, pawl.ErrStale) != (f == 5) || errors.Is(read, pawl.ErrStale) != (f == 5) {
				t.Errorf("%s: %d after 9: %v, %v", variables, f, written, read)
			}
		}
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pawl_fences WHERE resource = ?", []byte(resource)).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d rows of %q, %v", variables, n, resource, err)
		}
	}
}
