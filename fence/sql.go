package fence

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// The tables that the checks need, in the database that is written to. Make them with the
// application's own, before the first check.
const (
	PostgresTable = `CREATE TABLE IF NOT EXISTS pawl_fences (resource text PRIMARY KEY, fence bigint NOT NULL)`
	MySQLTable    = `CREATE TABLE IF NOT EXISTS pawl_fences (resource varbinary(255) PRIMARY KEY, fence bigint unsigned NOT NULL) ENGINE = InnoDB`
	SQLiteTable   = `CREATE TABLE IF NOT EXISTS pawl_fences (resource text PRIMARY KEY, fence integer NOT NULL) WITHOUT ROWID`
)

// A Row is what QueryRow returns, in database/sql and in pgx.
type Row interface{ Scan(dest ...any) error }

// Query makes a query function of one whose row is of a type of its own, so that this
// package needs no driver: fence.Query(tx.QueryRow) of a pgx.Tx, or
// fence.Query(tx.QueryRowContext) of a *sql.Tx.
func Query[R Row](query func(ctx context.Context, sql string, args ...any) R) func(ctx context.Context, sql string, args ...any) Row {
	return func(ctx context.Context, sql string, args ...any) Row { return query(ctx, sql, args...) }
}

// CheckPostgres accepts a write with this fence, or refuses it with a [*StaleError]: then
// roll the transaction back. It is one statement in the caller's transaction, best the
// first: it locks the row of the resource, so that others who write to the resource wait
// until the transaction ends.
//
//	err := fence.CheckPostgres(ctx, fence.Query(tx.QueryRow), "accounts", lease.Fence())
//
// It needs the table of [PostgresTable], in the search path. In REPEATABLE READ or above
// a transaction that waited here fails with SQLSTATE 40001, and is to be repeated.
func CheckPostgres(ctx context.Context, query func(ctx context.Context, sql string, args ...any) Row, resource string, fence uint64) error {
	return check(ctx, resource, fence, query, `INSERT INTO pawl_fences AS known (resource, fence) VALUES ($1, $2)
		ON CONFLICT (resource) DO UPDATE SET fence = greatest(known.fence, excluded.fence) RETURNING fence`)
}

// CheckSQLite is CheckPostgres on SQLite, with the table of [SQLiteTable].
func CheckSQLite(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error {
	return check(ctx, resource, fence, Query(tx.QueryRowContext), `INSERT INTO pawl_fences (resource, fence) VALUES (?, ?)
		ON CONFLICT (resource) DO UPDATE SET fence = max(fence, excluded.fence) RETURNING fence`)
}

func check(ctx context.Context, resource string, fence uint64, query func(ctx context.Context, sql string, args ...any) Row, statement string) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	var highest uint64
	if err := query(ctx, statement, resource, int64(fence)).Scan(&highest); err != nil {
		return failed(resource, err)
	}
	return decide(resource, fence, highest)
}

// CheckMySQL is CheckPostgres on MySQL and MariaDB, with the table of [MySQLTable].
func CheckMySQL(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	// LAST_INSERT_ID of a value is what the server answers with: MySQL has no RETURNING.
	done, err := tx.ExecContext(ctx, `INSERT INTO pawl_fences (resource, fence) VALUES (?, LAST_INSERT_ID(?))
		ON DUPLICATE KEY UPDATE fence = LAST_INSERT_ID(GREATEST(fence, VALUES(fence)))`, []byte(resource), fence)
	if err != nil {
		return failed(resource, err)
	}
	highest, err := done.LastInsertId()
	if err != nil {
		return failed(resource, err)
	}
	return decide(resource, fence, uint64(highest))
}

func failed(resource string, err error) error {
	hint := ""
	if strings.Contains(err.Error(), "pawl_fences") {
		hint = " (make the table that package fence names, and let this user write to it)"
	}
	return fmt.Errorf("pawl: check the fence for %q: %w%s", resource, err, hint)
}
