package mysqllock

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It checks the version, durability, replication,
// isolation, the clock, the rights, the pool, the tables, their triggers and each entry.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	s := d.store
	if s.closed.Load() {
		return nil, driver.ErrClosed
	}
	v, err := s.variables(ctx)
	if err != nil {
		return nil, s.driverError(ctx, err, nil)
	}
	var found engine.Findings
	if e := v.check(); e != nil {
		found.Add(true, driver.SeverityError, "server", e.Problem, e.Hint)
	}
	s.reportMissingRights(ctx, &found)
	defects, _ := s.checkTables(ctx)
	for _, e := range defects {
		found.Add(true, driver.SeverityError, "tables", e.Problem, e.Hint)
	}
	if len(found) == 0 {
		found = locktable.Damaged(ctx, d)
	}
	product := "MySQL"
	if _, _, maria := v.version(); maria {
		product = "MariaDB"
	}
	s.reportTriggers(ctx, &found)
	s.reportRecreated(&found)
	v.reportSettings(&found)
	s.reportWritableReplica(ctx, &found)
	s.reportClock(ctx, &found)
	s.reportPool(&found)
	found = append(found, engine.Version(product, v["version"])...)
	engine.SortFindings(found)
	return found, ctx.Err()
}

// reportRecreated reports a table that the driver created again while the other existed.
func (s *store) reportRecreated(found *engine.Findings) {
	const advice = "find the program that drops it; a restored backup must have both tables"
	table := s.recreated.Load()
	found.Add(table == &s.namesTable, driver.SeverityError, "tables",
		s.namesTable+" was gone, and Pawl has created it again: held locks are forgotten, and can be granted again, with greater fences", advice)
	found.Add(table == &s.lostTable, driver.SeverityWarning, "tables",
		s.lostTable+" was gone, and Pawl has created it again: a holder that lost its lease meanwhile detects that with its next renewal", advice)
}

// reportMissingRights tries each right, with statements that match no row.
func (s *store) reportMissingRights(ctx context.Context, found *engine.Findings) {
	for _, x := range []struct{ table, column string }{{s.namesTable, "version"}, {s.lostTable, "at"}} {
		table, column := x.table, x.column
		for _, statement := range []string{
			"SELECT * FROM " + table + " LIMIT 0",
			"UPDATE " + table + " SET " + column + " = " + column + " WHERE FALSE",
			"DELETE FROM " + table + " WHERE FALSE",
			"INSERT INTO " + table + " (" + column + ") SELECT " + column + " FROM " + table + " WHERE FALSE",
		} {
			_, err := s.exec(ctx, statement)
			if n := errNumber(err); n == 1142 || n == 1143 || n == noSuchTable {
				hint, _ := s.adviceFor(n)
				detail := fmt.Sprintf("the user may not %.6s in %s", statement, table)
				if n == noSuchTable {
					detail = table + " does not exist"
				}
				found.Add(true, driver.SeverityError, "rights", detail, hint)
				break
			}
		}
	}
}

// reportSettings reports the settings of the server and of the session that make locks
// less durable, or slower.
func (v variables) reportSettings(found *engine.Findings) {
	atCommit, hasBinlog := v["innodb_flush_log_at_trx_commit"], v.isOn("log_bin")
	found.Add(atCommit != "" && atCommit != "1", driver.SeverityWarning, "durability", "innodb_flush_log_at_trx_commit is "+atCommit+
		": a crash loses up to a second of grants, and the names are granted again, with greater fences", "set it to 1")
	found.Add(hasBinlog && v["sync_binlog"] != "1", driver.SeverityInfo, "durability", "sync_binlog is "+v["sync_binlog"]+
		": after a crash, replicas and so the next primary may lack acknowledged grants", "set it to 1 if replicas can take over")
	found.Add(hasBinlog && v["binlog_format"] == "STATEMENT", driver.SeverityError, "replication",
		"binlog_format is STATEMENT: replicas would repeat statements that depend on the clock, with other results", "set it to ROW or MIXED")
	found.Add(hasBinlog && v["sql_log_bin"] != "" && !v.isOn("sql_log_bin"), driver.SeverityWarning, "replication",
		"sql_log_bin is off in these sessions: no replica gets the locks", "leave it on; otherwise a fail-over loses all leases")
	found.Add(v.isOn("wsrep_on"), driver.SeverityWarning, "replication", "this is a node of Galera, which locks a row on one node only. If steps on two nodes change one row, the first to commit wins, and Pawl repeats the other; but leases end by the clock of the node that a client asks, and CheckLease does not delay steps on other nodes",
		"send all clients to one node, or synchronize the clocks and check fences at the data")
	found.Add(v.isolation() == "SERIALIZABLE", driver.SeverityInfo, "isolation", "the level of the pool is SERIALIZABLE",
		"READ COMMITTED locks less; CheckLease uses the level of its transaction")
}

// manyClosedConns is the number of closed idle connections that is worth a finding.
const manyClosedConns = 1000

// reportClock compares the server's clock with the client's.
func (s *store) reportClock(ctx context.Context, found *engine.Findings) {
	var now locktable.Instant
	sent := time.Now()
	if err := s.queryRow(ctx, "SELECT "+serverTime, &now); err != nil {
		return
	}
	offset := time.Duration(max(locktable.At(sent)-now, now-locktable.At(time.Now()), 0)) * time.Microsecond
	found.Add(offset > time.Second, driver.SeverityInfo, "clock", fmt.Sprintf("it differs from this host's by %v or more", offset.Round(time.Second)),
		"synchronize both; setting the server's clock ends leases early or late")
}

// reportPool checks how long calls wait for the pool, and how long its connections last.
func (s *store) reportPool(found *engine.Findings) {
	stats := s.db.Stats()
	closesMany := stats.MaxIdleClosed > manyClosedConns
	found.Add(closesMany, driver.SeverityInfo, "pool", fmt.Sprintf("%d connections were closed because too many were idle, and the next statements had to open others", stats.MaxIdleClosed),
		"set SetMaxIdleConns as high as SetMaxOpenConns: database/sql keeps two idle connections by default")
	found.Add(!closesMany && stats.MaxOpenConnections > 0 && stats.WaitDuration > time.Second, driver.SeverityWarning, "pool",
		fmt.Sprintf("calls have waited %v for one of its %d connections", stats.WaitDuration.Round(time.Millisecond), stats.MaxOpenConnections),
		"use a larger pool, or one for locks only: a renewal that waits may be too late")
}
