package postgreslock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

func TestTheDoctorReportsUnsafeSettings(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=on")
	if found := diagnose(t, openDriver(t, server.URL("postgres"))); found != "" {
		t.Errorf("a healthy server: the doctor finds %s, want nothing", found)
	}
	server.Database("unlogged")
	openDriver(t, server.URL("unlogged"))
	server.Do("unlogged", "ALTER TABLE pawl.locks SET UNLOGGED")
	server.Do("postgres", "CREATE USER poor; GRANT USAGE ON SCHEMA pawl TO poor; GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO poor")
	poor := "postgres://poor@" + server.Addr + "/postgres"
	pooler := pgtest.StartPooler(t, server, "transaction")
	for url, want := range map[string]string{
		server.URL("postgres") + "?push=false":             "info push",
		server.URL("postgres") + "?synchronous_commit=off": "error synchronous_commit",
		server.URL("unlogged"):                             "error tables",
		poor:                                               "error rights,error rights",
		pooler.URL("postgres"):                             "info pooler",
		pgtest.StartPooler(t, server, "session").URL("postgres"): "",
	} {
		d := openDriver(t, url) // a notification may take long
		eventually(t, fmt.Sprintf("%s: %q", url, want), func() bool { return diagnose(t, d) == want })
	}
	unsafe := pgtest.Start(t, "full_page_writes=off", "autovacuum=off")
	if found := diagnose(t, openDriver(t, unsafe.URL("postgres"))); found != "error fsync,warning full_page_writes,warning autovacuum" {
		t.Errorf("an unsafe server: the doctor finds %s", found)
	}
}

// By default a caller's pool prepares statements. Behind a pooler in transaction mode
// that works until the next step gets another connection.
func TestTheDoctorFindsAPoolThatPreparesBehindAPooler(t *testing.T) {
	t.Parallel()
	server, _, name := freshDatabase(t)
	pooler := pgtest.StartPooler(t, server, "session")
	for mode, want := range map[pgx.QueryExecMode]string{
		pgx.QueryExecModeCacheStatement: "error fsync,warning pooler,info tables",
		pgx.QueryExecModeCacheDescribe:  "error fsync,info tables",
		pgx.QueryExecModeExec:           "error fsync,info tables",
	} {
		pool := poolOf(t, pooler.URL(name), 4, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
		if found := diagnose(t, driverOver(t, pool, nil)); found != want {
			t.Errorf("%v: %q; want %q", mode, found, want)
		}
	}
}

func TestTheDoctorNamesATableThatIsMissing(t *testing.T) {
	t.Parallel()
	server, _, _ := freshDatabase(t)
	for parameters, want := range map[string]struct{ tables, advice string }{
		"":                        {`"pawl"."`, "`pawl schema postgres`"},
		"?schema=odd's&prefix=a_": {`"odd's"."a_`, `--schema 'odd'\''s' --prefix a_` + "`"},
	} {
		for _, table := range []string{"locks", "tidying"} {
			name := fmt.Sprint("without_", table, len(parameters))
			server.Database(name)
			d := openDriver(t, server.URL(name)+parameters)
			server.Do(name, "DROP TABLE "+want.tables+table+`"`)
			servertest.Finds(t, d, "error tables", want.tables+table+`" does not exist`)
			if found := fmt.Sprint(must(d.Diagnose(ctx))(t)); !strings.Contains(found, want.advice) {
				t.Errorf("the doctor finds %s; want the advice %s", found, want.advice)
			}
		}
	}
	for statements, want := range map[string]string{
		"ALTER TABLE pawl.locks DROP COLUMN until":                   "lacks until",
		"DELETE FROM pawl.tidying":                                   "no client can begin",
		"ALTER TABLE pawl.tidying ENABLE ROW LEVEL SECURITY":         "row security",
		"CREATE RULE odd AS ON UPDATE TO pawl.locks DO ALSO NOTHING": "a rule",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;" +
			"CREATE TRIGGER odd BEFORE UPDATE ON pawl.locks FOR EACH ROW EXECUTE FUNCTION f()": "a trigger",
	} {
		name := "odd_" + strings.ReplaceAll(want, " ", "_")
		server.Database(name)
		d := openDriver(t, server.URL(name))
		server.Do(name, statements)
		servertest.Finds(t, d, "error tables", want)
	}
	server.Database("nothing")
	d := driverOver(t, poolOf(t, server.URL("nothing"), 2), nil)
	if found := diagnose(t, d); !strings.HasSuffix(found, "info tables") {
		t.Errorf("a database without tables: the doctor finds %s", found)
	}
}

// diagnose returns a summary of the doctor's findings.
func diagnose(t *testing.T, d *postgreslock.Driver) string {
	t.Helper()
	var summary []string
	for _, f := range must(d.Diagnose(ctx))(t) {
		if f.Advice != "" { // all except the server's version
			summary = append(summary, string(f.Severity)+" "+f.Subject)
		}
	}
	return strings.Join(summary, ",")
}

// If a table is published without a replica identity, the first grant of a name succeeds,
// but no renewal.
func TestTheDoctorFindsAPublicationThatKeepsRowsFromChanging(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("job")
	gets(t, d, c)
	server.Do(name, "CREATE PUBLICATION everything FOR TABLE pawl.locks; ALTER TABLE pawl.locks REPLICA IDENTITY NOTHING")
	eventually(t, "a renewal fails with the hint", func() bool { // a session may learn of the change late
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		err = errors.Join(append(answers, err)...)
		return err != nil && strings.Contains(err.Error(), "REPLICA IDENTITY DEFAULT")
	})
	if found := diagnose(t, d); found != "error fsync,error tables" {
		t.Errorf("the doctor finds %s; want an error about the tables", found)
	}
	server.Do(name, "ALTER TABLE pawl.locks REPLICA IDENTITY DEFAULT")
	renews(t, d, c)
	releases(t, d, c)
}
