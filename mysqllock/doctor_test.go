package mysqllock_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// If one of the two tables is dropped, the driver creates it again. The doctor reports
// that, even of a driver that was opened later.
func TestTheDoctorReportsADroppedTable(t *testing.T) {
	s := mysqltest.Shared(t)
	for table, severity := range map[string]string{"pawl_names": "error", "pawl_lost": "warning"} {
		database := s.NewDatabase(t)
		url := "mysql:" + s.DSN(database)
		holder, d := openDriver(t, url), openDriver(t, url)
		gets(t, holder, mutex("job"))
		noError(t, holder.Close()) // its polls would create the table again
		if found := servertest.FindingsOf(t, d); found.Have("error tables") || found.Have("warning tables") {
			t.Errorf("both tables exist, and the doctor finds %q", found)
		}
		s.Do(t, "DROP TABLE "+database+"."+table)
		finds(t, d, "error rights", "`"+table+"` does not exist")
		finds(t, openDriver(t, url), severity+" tables", "`"+table+"` was gone")
	}
}

func TestTheDoctorFindsNothingOnAHealthyServer(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
	d := openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	if found, err := d.Diagnose(ctx); err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Detail, "MariaDB 1") || found[0].Advice != "" {
		t.Errorf("%+v, %v; want only the version", found, err)
	}
}

func TestTheDoctorReportsUnsafeServers(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--log-bin", "--binlog-format=STATEMENT", "--sync-binlog=0")
	d := openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	finds(t, d, "warning durability", "innodb_flush_log_at_trx_commit is 2")
	finds(t, d, "info durability", "sync_binlog is 0")
	finds(t, d, "error replication", "STATEMENT")
	s.Do(t, "ALTER TABLE "+mysqltest.Database+".pawl_names ENGINE=Aria")
	finds(t, d, "error tables", "pawl_names is in the engine Aria")
	s.Do(t, "SET GLOBAL read_only = 1")
	finds(t, d, "error server", "read-only")
	s.Do(t, "SET GLOBAL read_only = 0")
	for right, table := range map[string]string{"UPDATE": "pawl_names", "SELECT": "pawl_lost"} {
		rights := map[string]string{"pawl_names": "SELECT, INSERT, DELETE", "pawl_lost": "INSERT, UPDATE, DELETE"}[table]
		s.Do(t, "REVOKE ALL ON "+mysqltest.Database+".* FROM '"+mysqltest.User+"'@'%'",
			"GRANT "+rights+" ON "+mysqltest.Database+"."+table+" TO '"+mysqltest.User+"'@'%'")
		d := driverOver(t, s.Open(t, mysqltest.Database), nil)
		finds(t, d, "error rights", "the user may not "+right+" in `"+table+"`")
		s.Do(t, "GRANT ALL ON "+mysqltest.Database+".* TO '"+mysqltest.User+"'@'%'")
	}
}

func TestTheDoctorReportsTriggersAndEvents(t *testing.T) {
	_, db, d := freshDatabase(t)
	gets(t, d, mutex("job"))
	exec(t, db, "CREATE TRIGGER sweep AFTER INSERT ON pawl_names FOR EACH ROW DELETE FROM pawl_lost",
		"CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM pawl_names WHERE until < NOW()")
	finds(t, d, "error trigger", `"sweep"`)
	finds(t, d, "error event", `"nightly"`)
}

// A replica that takes writes can grant a name that its primary has also granted.
func TestTheDoctorReportsAWritableReplica(t *testing.T) {
	skipIfShort(t, "two servers, one a replica")
	primary := mysqltest.Start(t, "--log-bin", "--binlog-format=ROW", "--server-id=1")
	s := mysqltest.Start(t, "--server-id=2")
	_, port, _ := strings.Cut(primary.Addr, ":")
	s.Do(t, "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT="+port+", MASTER_USER='root', MASTER_USE_GTID=slave_pos", "START SLAVE")
	d := openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	const running = "warning replication"
	eventually(t, "the replica runs", func() bool { return servertest.FindingsOf(t, d).Have(running) })
	if found := servertest.FindingsOf(t, openDriver(t, "mysql:"+primary.DSN(mysqltest.Database))); found.Have(running) {
		t.Errorf("on the primary the doctor finds %q", found)
	}
}
