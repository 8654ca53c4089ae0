package postgreslock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It checks version, recovery, durability,
// replication, tables and rights, each entry, the pooler, the clock.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	e := &examination{driver: d}
	if d.store.closing.Err() != nil {
		return nil, driver.ErrClosed
	}
	err := withConn(ctx, d.store.conns, func(c *pgx.Conn) error {
		if err := e.checkSettings(ctx, c); err != nil {
			return err
		}
		return e.checkTables(ctx, c)
	})
	if err != nil {
		return nil, openError(ctx, d.store.server, err)
	}
	if e.readable {
		e.found = append(e.found, locktable.Damaged(ctx, d)...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e.checkPush(ctx)
	engine.SortFindings(e.found)
	return e.found, nil
}

type examination struct {
	driver   *lockDriver
	found    engine.Findings
	recovery bool // the server is a standby
	readable bool // this user can read all tables
}

// checkSettings checks the settings of the server and of this session, whether a failover
// can lose grants, and whether a caller's pool prepares statements behind a pooler. A
// pool opened by URL does not.
func (e *examination) checkSettings(ctx context.Context, c *pgx.Conn) error {
	names := []string{
		"fsync", "synchronous_commit", "full_page_writes", "default_transaction_read_only", "autovacuum", "server_encoding", "server_version",
		"synchronous_standby_names",
	}
	var versionNumber, standbys int
	var pid uint32 // of the server process; a pooler announces another number
	var now int64
	var queue float64
	values := make([]string, len(names))
	sent := time.Now()
	query, into := "SELECT pg_is_in_recovery(), "+clock+", current_setting('server_version_num')::int, pg_backend_pid(),"+
		" (SELECT count(*) FROM pg_stat_replication), CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_notification_queue_usage() END",
		[]any{&e.recovery, &now, &versionNumber, &pid, &standbys, &queue}
	for i, name := range names {
		query, into = query+", current_setting('"+name+"')", append(into, &values[i])
	}
	if err := c.QueryRow(ctx, query).Scan(into...); err != nil {
		return err
	}
	e.found.Add(e.recovery, driver.SeverityError, "recovery", "the server is a standby, which takes no locks", standbyHint)
	e.found.Add(versionNumber < 120000, driver.SeverityError, "version", fmt.Sprintf("the server's version is %d", versionNumber/10000), "use PostgreSQL 12 or later")
	e.found.Add(versionNumber >= 120000 && versionNumber < 140000, driver.SeverityInfo, "version", fmt.Sprintf("PostgreSQL %d gets no more fixes", versionNumber/10000), "upgrade the server")
	set := map[string]string{}
	for i, name := range names {
		set[name] = values[i]
	}
	e.found = append(e.found, engine.Version("PostgreSQL", set["server_version"])...)
	for _, f := range []struct {
		name, bad      string
		severity       driver.Severity
		detail, advice string
	}{
		{"fsync", "off", driver.SeverityError, "a crash of the machine can lose grants, or the whole database", "set it to on"},
		{"full_page_writes", "off", driver.SeverityWarning, "a crash of the machine can damage the tables", "set it to on, unless the filesystem writes whole pages"},
		{"synchronous_commit", "off", driver.SeverityError, "a crash of the server can lose the last grants, and the names be granted again", "set it to on for the user of the locks"},
		{"default_transaction_read_only", "on", driver.SeverityError, "this user's sessions may not write", "set it to off for the user of the locks"},
		{"autovacuum", "off", driver.SeverityWarning, "the tables grow with every step", "set it to on"},
	} {
		e.found.Add(set[f.name] == f.bad, f.severity, f.name, "it is "+f.bad+": "+f.detail, f.advice)
	}
	encoding, ahead := set["server_encoding"], locktable.Instant(now).Time().Sub(sent)
	e.found.Add(encoding != "UTF8" && encoding != "SQL_ASCII", driver.SeverityWarning, "encoding", "the database's is "+encoding+", which cannot store all names", "use a database in UTF8")
	e.found.Add(ahead > time.Since(sent)+5*time.Second || ahead < -5*time.Second, driver.SeverityInfo, "clock",
		fmt.Sprintf("the server's is %v ahead of this host's", ahead.Round(time.Second)), "synchronize both; the server's alone decides what has expired")
	e.found.Add(!e.recovery && standbys > 0 && strings.TrimSpace(set["synchronous_standby_names"]) == "", driver.SeverityWarning, "replication",
		fmt.Sprintf("%d standbys, none of them synchronous: a failover can lose the last grants, and the names be granted again", standbys),
		"set synchronous_standby_names, or check fences where it matters")
	e.found.Add(queue > 0.5, driver.SeverityWarning, "notifications", fmt.Sprintf("their queue is %.0f %% full: a session listens, and reads nothing", 100*queue),
		"end the session that pg_stat_activity shows idle in a transaction")
	mode := c.Config().DefaultQueryExecMode
	e.found.Add(pid != c.PgConn().PID() && (mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeDescribeExec), driver.SeverityWarning, "pooler",
		"the pool prepares statements: if the pooler is in transaction mode, another connection may get the next step, which then fails (42P05, 26000)",
		"give the pool QueryExecModeCacheDescribe or QueryExecModeExec")
	return nil
}

// checkTables checks the tables, and the rights of this user on them.
func (e *examination) checkTables(ctx context.Context, c *pgx.Conn) error {
	o := e.driver.store.options
	var missing []string
	e.readable = !e.recovery
	for _, name := range []string{"locks", "tidying"} {
		var exists, logged, hasRights, hasTrigger, noReplicaIdentity bool
		var missingColumns string
		err := c.QueryRow(ctx, "SELECT r IS NOT NULL, coalesce((SELECT relpersistence = 'p' FROM pg_class WHERE oid = r), true),"+
			" coalesce((SELECT bool_and(has_table_privilege(r, p)) FROM unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p), true),"+
			" r IS NOT NULL AND (EXISTS (SELECT FROM pg_trigger WHERE tgrelid = r AND NOT tgisinternal AND tgenabled <> 'D')"+
			" OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = r) OR (SELECT relrowsecurity FROM pg_class WHERE oid = r)),"+
			" r IS NOT NULL AND (SELECT relreplident = 'n' FROM pg_class WHERE oid = r) AND EXISTS (SELECT FROM pg_publication_tables JOIN pg_publication USING (pubname)"+
			" WHERE format('%I.%I', schemaname, tablename)::regclass = r AND (pubupdate OR pubdelete)),"+
			" coalesce((SELECT string_agg(n, ', ') FROM unnest($2::text[]) n WHERE r IS NOT NULL"+
			" AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = r AND attname = n AND NOT attisdropped)), '')"+
			" FROM (SELECT to_regclass("+toText("$1")+")::oid AS r) x", o.regclass(name), columns[name]).Scan(&exists, &logged, &hasRights, &hasTrigger, &noReplicaIdentity, &missingColumns)
		if sqlState(err) == "42501" {
			e.found.Add(true, driver.SeverityError, "rights", "this user may not use the schema "+o.Schema, "GRANT USAGE ON SCHEMA to it")
			e.readable = false
			return nil
		} else if err != nil {
			return err
		}
		if !exists {
			missing = append(missing, o.table(name))
		}
		e.readable = e.readable && missingColumns == "" && hasRights
		e.found.Add(missingColumns != "", driver.SeverityError, "tables", o.table(name)+" lacks "+missingColumns+": statements that need them fail",
			"while no lock is held, drop the table, and run what `"+o.command()+"` prints")
		e.found.Add(hasTrigger, driver.SeverityError, "tables", o.table(name)+" has a trigger, a rule or row security, which can change what is stored, or hide it",
			"drop the trigger or the rule; ALTER TABLE ... DISABLE ROW LEVEL SECURITY")
		e.found.Add(noReplicaIdentity, driver.SeverityError, "tables", o.table(name)+" is published with REPLICA IDENTITY NOTHING: the server refuses to change its rows, and so to renew", replicaIdentityHint)
		e.found.Add(!logged, driver.SeverityError, "tables", o.table(name)+" is unlogged: a crash of the server empties it", "ALTER TABLE ... SET LOGGED")
		e.found.Add(!hasRights, driver.SeverityError, "rights", "this user lacks rights on "+o.table(name), "GRANT SELECT, INSERT, UPDATE, DELETE on it")
	}
	noTidyingRow := false
	if e.readable = e.readable && len(missing) == 0; e.readable {
		if err := c.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM "+o.table("tidying")+")").Scan(&noTidyingRow); err != nil {
			return err
		}
	}
	isPrimary := !e.recovery
	e.found.Add(isPrimary && noTidyingRow, driver.SeverityError, "tables", "the row of "+o.table("tidying")+" is gone: no client can begin", "run what `"+o.command()+"` prints, which puts it back")
	e.found.Add(isPrimary && len(missing) == 2, driver.SeverityInfo, "tables", "they do not exist yet", "the first client that locks creates them; or run what `"+o.command()+"` prints")
	e.found.Add(isPrimary && len(missing) == 1, driver.SeverityError, "tables", strings.Join(missing, "")+" does not exist, but the other table does: statements that need it fail",
		"run what `"+o.command()+"` prints, while no lock is held; then every client has to open the database again")
	return nil
}

var columns = map[string][]string{
	"locks":   {"name", "holders", "fence", "until", "version", "entry"},
	"tidying": {"one", "version", "cursor_name", "rest"},
}

// checkPush checks whether signals arrive. Behind a pooler the listener has to test that
// first.
func (e *examination) checkPush(ctx context.Context) {
	d := e.driver
	if !d.store.options.NoPush && d.store.pooled.Load() {
		d.store.listener.awaitPushTest(ctx)
	}
	noPush := d.store.options.NoPush
	e.found.Add(noPush, driver.SeverityInfo, "push", "it is turned off: waiting claims poll the table", "leave out push=false for quicker hand-overs")
	e.found.Add(!noPush && !d.store.listener.pushes(), driver.SeverityInfo, "pooler", "notifications do not pass through the pooler: waiting claims poll the table, every 5 to 250 ms",
		"give locks a direct connection, or a pool in session mode, for quicker hand-overs")
}
