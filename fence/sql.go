package fence

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"strings"
)

// The tables for the checks, in the database that the application writes to. Create them
// with the application's own tables, before the first check. The column fence is the
// highest fence of a writer, and the column seen the highest fence of a writer or reader.
const (
	PostgresTable = `CREATE TABLE IF NOT EXISTS pawl_fences (resource text PRIMARY KEY, fence bigint NOT NULL, seen bigint NOT NULL)`
	MySQLTable    = `CREATE TABLE IF NOT EXISTS pawl_fences (resource varbinary(255) PRIMARY KEY, fence bigint unsigned NOT NULL, seen bigint unsigned NOT NULL) ENGINE = InnoDB`
	SQLiteTable   = `CREATE TABLE IF NOT EXISTS pawl_fences (resource text PRIMARY KEY, fence integer NOT NULL, seen integer NOT NULL) WITHOUT ROWID`
)

// A statement may store a fence that the check then refuses. That does no harm, because
// that fence was granted, too, and is below the value of the column seen.
const (
	// The resource is bytes, because PostgreSQL reads text in the session's encoding.
	postgresWriter = `INSERT INTO pawl_fences AS known (resource, fence, seen) VALUES (pg_catalog.convert_from($1, 'UTF8'), $2, $2) ON CONFLICT (resource)
		DO UPDATE SET fence = greatest(known.fence, excluded.fence), seen = greatest(known.seen, excluded.seen) RETURNING seen`
	postgresReader = `INSERT INTO pawl_fences AS known (resource, fence, seen) VALUES (pg_catalog.convert_from($1, 'UTF8'), 0, $2) ON CONFLICT (resource)
		DO UPDATE SET seen = greatest(known.seen, excluded.seen) RETURNING fence`

	sqliteWriter = `INSERT INTO pawl_fences (resource, fence, seen) VALUES (?1, ?2, ?2) ON CONFLICT (resource)
		DO UPDATE SET fence = max(fence, excluded.fence), seen = max(seen, excluded.seen) RETURNING seen`
	sqliteReader = `INSERT INTO pawl_fences (resource, fence, seen) VALUES (?1, 0, ?2) ON CONFLICT (resource)
		DO UPDATE SET seen = max(seen, excluded.seen) RETURNING fence`

	// MySQL has no RETURNING, but returns the argument of LAST_INSERT_ID. The resource is
	// in hexadecimal, because a session may convert what a client sends, even bytes.
	mysqlWriter = `INSERT INTO pawl_fences (resource, fence, seen) VALUES (UNHEX(?), ?, LAST_INSERT_ID(?)) ON DUPLICATE KEY
		UPDATE fence = GREATEST(fence, VALUES(fence)), seen = LAST_INSERT_ID(GREATEST(seen, VALUES(seen)))`
	mysqlReader = `INSERT INTO pawl_fences (resource, seen, fence) VALUES (UNHEX(?), ?, LAST_INSERT_ID(0)) ON DUPLICATE KEY
		UPDATE seen = GREATEST(seen, VALUES(seen)), fence = LAST_INSERT_ID(fence)`
)

// A Row is the result of QueryRow in database/sql and in pgx.
type Row interface{ Scan(dest ...any) error }

// Query converts a query function whose row has another type, so that this package needs
// no driver: fence.Query(tx.QueryRow) for a pgx.Tx, or fence.Query(tx.QueryRowContext)
// for a *sql.Tx.
func Query[R Row](query func(ctx context.Context, sql string, args ...any) R) func(ctx context.Context, sql string, args ...any) Row {
	if query == nil {
		return nil
	}
	return func(ctx context.Context, sql string, args ...any) Row { return query(ctx, sql, args...) }
}

// CheckPostgres accepts a write with this fence, or refuses it with a [*StaleError].
// After a refusal, roll the transaction back. The check is one statement in the caller's
// transaction, preferably its first. It locks the row of the resource, so that other
// writers of the resource wait until the transaction ends.
//
//	err := fence.CheckPostgres(ctx, fence.Query(tx.QueryRow), "accounts", lease.Fence())
//
// It needs the table of [PostgresTable], in the search path. If the table is missing, has
// other columns, or is not writable, the error is a [*pawl.BackendError] that is
// Permanent and says what to do. In REPEATABLE READ or above, a transaction that waited
// here fails with SQLSTATE 40001. Repeat the transaction.
func CheckPostgres(ctx context.Context, query func(ctx context.Context, sql string, args ...any) Row, resource string, fence uint64) error {
	return checkSQL(ctx, "postgres", query, postgresWriter, resource, []byte(resource), fence)
}

// CheckPostgresReader is CheckPostgres for a reader of an RWMutex. It refuses the reader
// if it has accepted a writer with a higher fence. The package comment says how to read
// in several transactions, or something besides the database.
//
// Preferably call it outside of a transaction. Readers that call it in transactions wait
// for each other until the transactions end.
//
//	err := fence.CheckPostgresReader(ctx, fence.Query(pool.QueryRow), "accounts", lease.Fence())
func CheckPostgresReader(ctx context.Context, query func(ctx context.Context, sql string, args ...any) Row, resource string, fence uint64) error {
	return checkSQL(ctx, "postgres", query, postgresReader, resource, []byte(resource), fence)
}

// CheckSQLite is CheckPostgres on SQLite, with the table of [SQLiteTable].
func CheckSQLite(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error {
	if err := checkNotNil(ctx, "transaction", tx); err != nil {
		return err
	}
	return checkSQL(ctx, "sqlite", Query(tx.QueryRowContext), sqliteWriter, resource, resource, fence)
}

// CheckSQLiteReader is CheckPostgresReader on SQLite. db is a *sql.DB, a *sql.Conn or a
// *sql.Tx.
func CheckSQLiteReader(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, resource string, fence uint64) error {
	if err := checkNotNil(ctx, "database", db); err != nil {
		return err
	}
	return checkSQL(ctx, "sqlite", Query(db.QueryRowContext), sqliteReader, resource, resource, fence)
}

func checkSQL(ctx context.Context, store string, query func(ctx context.Context, sql string, args ...any) Row, statement, resource string, resourceArgument any, fence uint64) error {
	if err := cmp.Or(checkNotNil(ctx, "query", query), validate(resource, fence)); err != nil {
		return err
	}
	var highest uint64
	if err := query(ctx, statement, resourceArgument, int64(fence)).Scan(&highest); err != nil {
		return tableError(store, resource, err)
	}
	return checkNotBelow(resource, fence, highest)
}

// CheckMySQL is CheckPostgres on MySQL and MariaDB, with the table of [MySQLTable]. In
// REPEATABLE READ under innodb_snapshot_isolation, a transaction that read before this
// check, and waited in it, fails with error 1020. Repeat the transaction.
func CheckMySQL(ctx context.Context, tx *sql.Tx, resource string, fence uint64) error {
	return checkMySQL(ctx, tx, mysqlWriter, resource, fence, fence, fence)
}

// CheckMySQLReader is CheckPostgresReader on MySQL and MariaDB. db is a *sql.DB, a
// *sql.Conn or a *sql.Tx.
func CheckMySQLReader(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, resource string, fence uint64) error {
	return checkMySQL(ctx, db, mysqlReader, resource, fence, fence)
}

func checkMySQL(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statement, resource string, fence uint64, args ...any) error {
	if err := cmp.Or(checkNotNil(ctx, "database or transaction", db), validate(resource, fence)); err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, statement, append([]any{hex.EncodeToString([]byte(resource))}, args...)...)
	if err != nil {
		return tableError("mysql", resource, err)
	}
	highest, err := result.LastInsertId()
	if err != nil {
		return tableError("mysql", resource, err)
	}
	return checkNotBelow(resource, fence, uint64(highest))
}

// tableError returns the error of a statement. If the table is missing, has other
// columns, or is not writable, the text names it on all three databases.
func tableError(store, resource string, err error) error {
	failed := backendError(store, "check the fence for", resource, err)
	if text := err.Error(); strings.Contains(text, "pawl_fences") || strings.Contains(text, "'seen'") {
		failed.Permanent = true
		failed.Hint = "create the table pawl_fences with " + tableConstants[store] + " of package fence, and let this user write to it"
	}
	return failed
}

var tableConstants = map[string]string{"postgres": "PostgresTable", "mysql": "MySQLTable", "sqlite": "SQLiteTable"}
