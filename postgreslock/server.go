package postgreslock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/engine"
)

// A server is the database of the locks. Before its first use, the driver checks it and
// creates the tables.
type server struct {
	conns
	options          *Options
	passwordFromFile bool

	preparing chan struct{} // has a value while a goroutine checks the server

	databaseLocation atomic.Pointer[string]         // the database, for messages
	ready            atomic.Bool                    // checked, and not found to be a standby since
	wasReady         atomic.Bool                    // has been ready at least once
	config           atomic.Pointer[pgx.ConnConfig] // the configuration of a connection; nil before the first one
	pooled           atomic.Bool                    // a pooler answers: its process ID is not the server's
}

func newServer(o *Options, dbLocation string) *server {
	s := &server{options: o, preparing: make(chan struct{}, 1)}
	s.databaseLocation.Store(&dbLocation)
	return s
}

// connect takes a connection. It prepares the database first, unless it is ready.
func (s *server) connect(ctx context.Context) (*pgx.Conn, func(), error) {
	if !s.ready.Load() { // wait before s.take, because a goroutine that waits must not keep a connection
		select {
		case s.preparing <- struct{}{}:
			defer func() { <-s.preparing }()
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	c, free, err := s.take(ctx)
	if err != nil || s.ready.Load() {
		return c, free, err
	}
	if err := s.prepare(ctx, c); err != nil {
		if isStandby(err) {
			_ = c.Close(ctx) // the next connection may reach another server
		}
		free()
		return nil, nil, err
	}
	return c, free, nil
}

// location returns the description of the tables for messages: the database, and the
// schema and the prefix unless they are the defaults.
func (s *server) location() string { return *s.databaseLocation.Load() + s.options.locationSuffix() }

// connConfig returns the configuration of a connection. The first time, it also connects.
func (s *server) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	if !s.wasReady.Load() {
		_, free, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		free()
	}
	return s.config.Load().Copy(), nil
}

// isStandby reports whether a failure means that the server is a standby, maybe since a
// moment ago.
func isStandby(err error) bool {
	e, ok := errors.AsType[*engine.ConfigError](err)
	return ok && (e.Hint == standbyHint || e.Hint == readOnlyHint) || sqlState(err) == "25006"
}

// prepare checks the server, and creates the tables. Many processes may do so at the same
// time.
func (s *server) prepare(ctx context.Context, c *pgx.Conn) error {
	tablesExist, pooled, err := s.checkServer(ctx, c)
	if err == nil && !tablesExist {
		if err = s.createTables(ctx, c); err == nil {
			tablesExist, pooled, err = s.checkServer(ctx, c)
		}
		if err == nil && !tablesExist {
			err = errors.New("the tables do not exist after they were created")
		}
	}
	if err != nil {
		return err
	}
	config := c.Config()
	dbLocation := location(config)
	s.databaseLocation.Store(&dbLocation)
	s.config.CompareAndSwap(nil, config)
	s.pooled.Store(pooled)
	s.wasReady.Store(true)
	s.ready.Store(true)
	return nil
}

// checkServer checks the server. It reports whether the tables exist, and whether there
// is a pooler.
func (s *server) checkServer(ctx context.Context, c *pgx.Conn) (tablesExist, pooled bool, err error) {
	var recovery, readOnly, escapesBytes bool
	var versionNumber int
	var pid uint32
	var versionText string
	err = c.QueryRow(ctx, "SELECT version(), pg_is_in_recovery(), current_setting('transaction_read_only')::bool,"+
		" current_setting('bytea_output') = 'escape', current_setting('server_version_num')::int, pg_backend_pid(), to_regclass("+toText("$1")+") IS NOT NULL",
		s.options.regclass("tidying")).Scan(&versionText, &recovery, &readOnly, &escapesBytes, &versionNumber, &pid, &tablesExist)
	switch {
	case err != nil:
		return false, false, err
	case forkName(versionText) != "":
		return false, false, &engine.ConfigError{
			Problem: "the server is " + forkName(versionText) + ", whose nodes have a clock each",
			Hint:    "use PostgreSQL itself, or another backend of Pawl",
		}
	case versionNumber < 120000:
		return false, false, &engine.ConfigError{Problem: fmt.Sprintf("the server's version is %d", versionNumber/10000), Hint: "PostgreSQL 12 or later is needed"}
	case recovery:
		return false, false, &engine.ConfigError{
			Problem: "the server is in recovery: a standby takes no locks", Hint: standbyHint, Temporary: s.wasReady.Load(),
		}
	case readOnly:
		return false, false, &engine.ConfigError{
			Problem: "this user's sessions may not write: default_transaction_read_only is on", Hint: readOnlyHint, Temporary: s.wasReady.Load(),
		}
	case escapesBytes && wantsTextAnswers(c):
		return false, false, &engine.ConfigError{
			Problem: "the server answers with bytes in a form that pgx cannot read: bytea_output is escape",
			Hint:    "set bytea_output to hex for the user of the locks, or give the pool QueryExecModeCacheDescribe",
		}
	}
	if pooled = pid != c.PgConn().PID(); pooled {
		if err := checkTransactions(ctx, c); err != nil {
			return false, false, err
		}
	}
	if !tablesExist {
		return false, pooled, nil
	}
	var version int
	switch err := c.QueryRow(ctx, "SELECT version FROM "+s.options.table("tidying")).Scan(&version); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, false, &engine.ConfigError{
			Problem: "the row of " + s.options.table("tidying") + " is gone", Hint: "run what `" + s.options.command() + "` prints, which puts it back",
		}
	case err != nil:
		return false, false, err
	}
	if version != schemaVersion {
		return false, false, &engine.ConfigError{
			Problem: fmt.Sprintf("the tables have version %d, and this program knows %d", version, schemaVersion),
			Hint:    "update this program, or give it a schema of its own",
		}
	}
	return true, pooled, nil
}

// forkName returns the name of a server that speaks PostgreSQL's protocol but has no
// single clock.
func forkName(version string) string {
	for mark, name := range map[string]string{"CockroachDB": "CockroachDB", "-YB-": "YugabyteDB", "Redshift": "Redshift"} {
		if strings.Contains(version, mark) {
			return name
		}
	}
	return ""
}

// wantsTextAnswers reports whether the client asks for its answers as text.
func wantsTextAnswers(c *pgx.Conn) bool {
	mode := c.Config().DefaultQueryExecMode
	return mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol
}

// checkTransactions returns an error if the pooler does not allow a transaction of
// several statements.
func checkTransactions(ctx context.Context, c *pgx.Conn) error {
	tx, err := c.Begin(ctx)
	if err == nil {
		return tx.Rollback(ctx)
	}
	if sqlState(err) == "08P01" {
		return &engine.ConfigError{
			Problem: "the pooler before the server allows no transaction: its pool_mode is statement",
			Hint:    "set pool_mode to transaction or session for the database of the locks",
		}
	}
	return err
}

const (
	standbyHint  = "connect to the primary; with several hosts, target_session_attrs=read-write finds it"
	readOnlyHint = "set default_transaction_read_only to off for the user of the locks"
)

// createTables creates the tables, under a lock, because two concurrent CREATE IF NOT
// EXISTS may fail.
func (s *server) createTables(ctx context.Context, c *pgx.Conn) error {
	schema := identifier(s.options.Schema)
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		// Many clients may do this at once, so the wait is long.
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '30s'; SELECT pg_advisory_xact_lock(hashtextextended('pawl schema', 0))"); err != nil {
			return err
		}
		var schemaExists bool
		if err := tx.QueryRow(ctx, "SELECT to_regnamespace("+toText("$1")+") IS NOT NULL", []byte(pgx.Identifier{s.options.Schema}.Sanitize())).Scan(&schemaExists); err != nil {
			return err
		}
		script := s.options.tables()
		if !schemaExists { // even with IF NOT EXISTS, the user would need the right to create a schema
			script = "CREATE SCHEMA " + schema + ";\n" + script
		}
		_, err := tx.Exec(ctx, script)
		return err
	})
}
