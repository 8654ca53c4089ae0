package postgreslock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/sqltable"
)

// checked is a DB that looks at the server before its first use, and makes the tables.
type checked struct {
	sqltable.DB
	db      *sql.DB
	options *Options

	mu    sync.Mutex // protects ready
	ready bool
}

func (c *checked) Begin(ctx context.Context) (sqltable.Tx, error) {
	if err := c.setUp(ctx); err != nil {
		return nil, err
	}
	return c.DB.Begin(ctx)
}

func (c *checked) Query(ctx context.Context, s sqltable.Statement, row func(scan sqltable.Scan) error) error {
	if err := c.setUp(ctx); err != nil {
		return err
	}
	return c.DB.Query(ctx, s, row)
}

// setupError says that a server, or its tables, will not do.
type setupError struct{ problem, hint string }

func (e *setupError) Error() string { return e.problem }

// setUp makes the tables, once. Twenty processes may be at it.
func (c *checked) setUp(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return nil
	}
	there, err := c.look(ctx)
	if err == nil && !there {
		if err = c.create(ctx); err == nil {
			there, err = c.look(ctx)
		}
		if err == nil && !there {
			err = errors.New("the tables were made, and are not there")
		}
	}
	c.ready = err == nil
	return err
}

// look finds out whether the tables are there, and whether the server will do.
func (c *checked) look(ctx context.Context) (there bool, err error) {
	var recovery bool
	var number int
	err = c.db.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('server_version_num')::int, to_regclass($1) IS NOT NULL",
		c.options.table("tidying")).Scan(&recovery, &number, &there)
	switch {
	case err != nil:
		return false, err
	case number < 120000:
		return false, &setupError{fmt.Sprintf("the server's version is %d", number/10000), "PostgreSQL 12 or later is needed"}
	case recovery:
		return false, &setupError{"the server is in recovery: a standby takes no locks", standbyHint}
	case !there:
		return false, nil
	}
	var version int
	if err := c.db.QueryRowContext(ctx, "SELECT version FROM "+c.options.table("tidying")).Scan(&version); err != nil {
		return false, err
	}
	if version != schemaVersion {
		return false, &setupError{
			fmt.Sprintf("the tables have version %d, and this program knows %d", version, schemaVersion),
			"update this program, or give it a schema of its own",
		}
	}
	return true, nil
}

const standbyHint = "connect to the primary; with several hosts, target_session_attrs=read-write finds it"

// create makes the tables. CREATE IF NOT EXISTS alone fails when two do it at once.
func (c *checked) create(ctx context.Context) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('pawl schema', 0))"); err != nil {
		return err
	}
	var schema bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", pgx.Identifier{c.options.Schema}.Sanitize()).Scan(&schema); err != nil {
		return err
	}
	script := c.options.tables()
	if !schema { // IF NOT EXISTS would need the right to create one even if it is there
		script = "CREATE SCHEMA " + pgx.Identifier{c.options.Schema}.Sanitize() + ";\n" + script
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	return tx.Commit()
}
