package postgreslock_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/skip"
	"github.com/pawl-go/pawl/postgreslock"
)

// oddSettings are settings of a session that differ from the defaults. None of them may
// change the results of a client.
var oddSettings = map[string]string{
	"client_encoding": "LATIN1", "standard_conforming_strings": "off", "bytea_output": "escape", "DateStyle": "German, DMY",
	"IntervalStyle": "sql_standard", "TimeZone": "Asia/Kathmandu", "lc_messages": "C.UTF-8", "lc_monetary": "C.UTF-8",
	"lc_numeric": "C.UTF-8", "lc_time": "C.UTF-8", "default_transaction_isolation": "serializable",
	"default_transaction_deferrable": "on", "search_path": "shadows, pg_catalog", "row_security": "off", "statement_timeout": "30s",
	"idle_in_transaction_session_timeout": "30s", "extra_float_digits": "-15", "synchronous_commit": "local",
	"array_nulls": "off", "backslash_quote": "off", "transform_null_equals": "on", "plan_cache_mode": "force_generic_plan",
}

// createShadows creates functions that hide the server's own in sessions of oddSettings.
func createShadows(t testing.TB, c *pgx.Conn) {
	t.Helper()
	exec(t, c, "CREATE SCHEMA shadows")
	for function, answer := range map[string]string{
		"clock_timestamp() RETURNS timestamptz":        "SELECT timestamptz '2030-01-01'",
		"convert_from(bytea, name) RETURNS text":       "SELECT 'one'",
		"convert_to(text, name) RETURNS bytea":         `SELECT '\x6f6e65'::bytea`,
		"encode(bytea, text) RETURNS text":             "SELECT ''",
		"pg_notify(text, text) RETURNS void":           "SELECT",
		"set_config(text, text, boolean) RETURNS text": "SELECT ''",
		"starts_with(text, text) RETURNS boolean":      "SELECT false",
	} {
		exec(t, c, "CREATE FUNCTION shadows."+function+" LANGUAGE sql AS $$"+answer+"$$")
	}
	exec(t, c, "CREATE FUNCTION shadows.five(bigint) RETURNS bigint LANGUAGE sql AS $$SELECT 5::bigint$$",
		"CREATE AGGREGATE shadows.count(*) (SFUNC = shadows.five, STYPE = bigint, INITCOND = '5')")
}

// settingsWith returns oddSettings with changes.
func settingsWith(changes map[string]string) map[string]string {
	all := maps.Clone(oddSettings)
	maps.Copy(all, changes)
	return all
}

// sessionPool returns a pool of a caller whose sessions have these settings.
func sessionPool(t testing.TB, url string, mode pgx.QueryExecMode, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	return poolOf(t, url, 4, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams, c.ConnConfig.DefaultQueryExecMode = settings, mode
	})
}

// sessionOpeners returns functions that open drivers with different settings.
func sessionOpeners(server *pgtest.Server, url string) []func(t testing.TB) driver.Driver {
	pooled := func(mode pgx.QueryExecMode, changes map[string]string) func(t testing.TB) driver.Driver {
		return func(t testing.TB) driver.Driver {
			return mustOpen(t)(asDriver(postgreslock.New(sessionPool(t, url, mode, settingsWith(changes)), nil)))
		}
	}
	return []func(t testing.TB) driver.Driver{
		pooled(pgx.QueryExecModeCacheStatement, nil),
		pooled(pgx.QueryExecModeCacheDescribe, map[string]string{"client_encoding": "SJIS", "default_transaction_isolation": "repeatable read"}),
		pooled(pgx.QueryExecModeExec, map[string]string{"client_encoding": "EUC_JP", "bytea_output": "hex"}),
		pooled(pgx.QueryExecModeSimpleProtocol, map[string]string{
			"client_encoding": "UTF8", "standard_conforming_strings": "on", "bytea_output": "hex",
		}),
		func(t testing.TB) driver.Driver {
			config, err := pgx.ParseConfig(url)
			noError(t, err)
			config.RuntimeParams = settingsWith(map[string]string{"client_encoding": "WIN1252"})
			db := stdlib.OpenDB(*config)
			t.Cleanup(func() { _ = db.Close() })
			return mustOpen(t)(asDriver(postgreslock.NewDB(db, nil)))
		},
		func(t testing.TB) driver.Driver {
			return open(t, strings.Replace(url, "postgres@", "odd@", 1)+"?options=-c%20client_encoding%3DLATIN1")
		},
	}
}

// TestConformanceOfSessions runs the suite with sessions of different settings.
func TestConformanceOfSessions(t *testing.T) {
	skipIfShort(t, "it runs the whole suite again")
	t.Parallel()
	server, url, _ := freshDatabase(t)
	c := conn(t, url)
	createShadows(t, c)
	exec(t, c, "DO $$ BEGIN CREATE USER odd SUPERUSER; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	for name, value := range oddSettings {
		if name == "search_path" {
			value = strings.ReplaceAll(value, ", ", "', '") // in one pair of quotes it would be one schema
		}
		exec(t, c, "ALTER ROLE odd SET "+name+" = '"+value+"'")
	}
	h := harness(url, server.Addr)
	h.Sessions = sessionOpeners(server, url)
	drivertest.Run(t, h)
}

// Clients with different encodings use the same tables.
func TestASchemaIsTheSameInEveryEncoding(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	o := &postgreslock.Options{Schema: `gr\öße"🔒`, Prefix: "ü_"}
	c := mutex("größe")
	for i, encoding := range []string{"UTF8", "LATIN1", "SJIS"} {
		settings := map[string]string{"client_encoding": encoding, "DateStyle": "German, DMY"}
		modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec}
		d := driverOver(t, sessionPool(t, url, modes[i], settings), o)
		if i == 0 {
			gets(t, d, c)
			continue
		}
		isRefused(t, d, mutex(c.Name))
		renews(t, d, c)
		if found, err := d.Diagnose(ctx); err != nil || len(found) != 2 || found[0].Subject != "fsync" || found[1].Subject != "server" {
			t.Errorf("%s: %v, %v; want only findings about fsync and the version", encoding, found, err)
		}
	}
	var name string
	row := conn(t, url).QueryRow(ctx, `SELECT name FROM "gr\öße""🔒"."ü_locks"`)
	if err := row.Scan(&name); err != nil || name != c.Name {
		t.Errorf("a row of %q, %v; want %q", name, err, c.Name)
	}
}

// The driver refuses unsuitable sessions at their first use, with the reason.
func TestSessionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	openDriver(t, url) // creates the tables
	exec(t, conn(t, url), "CREATE SCHEMA likes", "CREATE FUNCTION likes.version() RETURNS text LANGUAGE sql AS $$SELECT 'CockroachDB CCL v25.1'$$")
	pooler := pgtest.StartPooler(t, server, "statement")
	for badURL, want := range map[string]string{
		url + "?options=-cdefault_transaction_read_only%3Don":                               "set default_transaction_read_only to off",
		url + "?default_query_exec_mode=exec&options=-cbytea_output%3Descape":               "set bytea_output to hex",
		url + "?default_query_exec_mode=simple_protocol&options=-c%20bytea_output%3Descape": "set bytea_output to hex",
		url + "?search_path=likes,pg_catalog":                                               "the server is CockroachDB",
		pooler.URL(name):                                                                    "set pool_mode to transaction or session",
		url + "?schema=rowless":                                                             "the row of \"rowless\".\"tidying\" is gone",
	} {
		if strings.Contains(badURL, "rowless") {
			openDriver(t, badURL)
			exec(t, conn(t, url), "DELETE FROM rowless.tidying")
		}
		failsToOpen(t, badURL, want)
	}
}

// A server that ends idle sessions does not end the session that listens.
func TestASessionThatListensMayBeIdle(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	c := conn(t, url)
	selectListener := "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
	var canEndIdle bool
	noError(t, c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'idle_session_timeout')").Scan(&canEndIdle))
	if !canEndIdle {
		skip.Unproven(t, "a server below 14 ends no idle sessions")
	}
	url += "?options=-cidle_session_timeout%3D2s" // the pool pings a connection that was idle for a second
	gets(t, openDriver(t, url), mutex("job"))
	var before, after int
	eventually(t, "the driver listens", func() bool { return c.QueryRow(ctx, selectListener).Scan(&before) == nil })
	other := conn(t, url).PgConn().PID() // idle for less time than the listener
	eventually(t, "the server ends an idle session", func() bool {
		var n int
		return c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", int(other)).Scan(&n) == nil && n == 0
	})
	if err := c.QueryRow(ctx, selectListener).Scan(&after); err != nil || after != before {
		t.Errorf("session %d listens, %v; want session %d", after, err, before)
	}
}

// The transaction of a caller may be in a session with another encoding.
func TestCheckLeaseWorksInAnotherEncoding(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	g := gets(t, d, mutex("größe"))
	createShadows(t, conn(t, url))
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		tx, err := sessionPool(t, url, mode, settingsWith(nil)).Begin(ctx)
		noError(t, err)
		if err := d.CheckLease(ctx, tx, fencetest.Lease("größe", g.Fence)); err != nil {
			t.Errorf("in mode %v: %v; want the lease to hold", mode, err)
		}
		if err := d.CheckLease(ctx, tx, fencetest.Lease("größe", g.Fence-1)); !errors.Is(err, driver.ErrStale) {
			t.Errorf("in mode %v, with a lower fence: %v; want ErrStale", mode, err)
		}
		_ = tx.Rollback(ctx)
	}
}
