package mysqllock

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

func (s *server) tableNames() string {
	return literalOf(s.Prefix+"names") + ", " + literalOf(s.Prefix+"lost")
}

// checkTables returns errors in the definition of the tables: an operator may have
// created or altered them without following the schema.
func (s *server) checkTables(ctx context.Context) (defects []*engine.ConfigError, err error) {
	var table, kind, column string
	err = s.query(ctx, "SELECT t.table_name, COALESCE(t.engine, 'VIEW'), c.data_type FROM information_schema.tables AS t "+
		"JOIN information_schema.columns AS c ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name IN ('name', 'inbox') "+
		"WHERE t.table_schema = DATABASE() AND t.table_name IN ("+s.tableNames()+")", []any{&table, &kind, &column}, func() {
		if kind != "InnoDB" {
			defects = append(defects, &engine.ConfigError{
				Problem: table + " is in the engine " + kind + ", not InnoDB",
				Hint:    "tables of other engines neither lock rows nor survive a crash: ALTER TABLE " + table + " ENGINE=InnoDB",
			})
		}
		if !strings.EqualFold(column, "varbinary") {
			defects = append(defects, &engine.ConfigError{
				Problem: table + " has names of the type " + column + ", not VARBINARY, so that a collation compares them",
				Hint:    "different names could count as equal: stop all clients, drop both tables, and create them with the output of " + s.command(),
			})
		}
	})
	return defects, err
}

// reportTriggers reports triggers and events that may change the stored entries.
func (s *server) reportTriggers(ctx context.Context, found *engine.Findings) {
	for _, x := range []struct{ kind, statement string }{
		{"trigger", "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = DATABASE() AND event_object_table IN (" + s.tableNames() + ")"},
		{"event", fmt.Sprintf("SELECT event_name FROM information_schema.events WHERE LOCATE(%s, event_definition) + LOCATE(%s, event_definition) > 0",
			literalOf(s.Prefix+"names"), literalOf(s.Prefix+"lost"))},
	} {
		var name string
		_ = s.query(ctx, x.statement, []any{&name}, func() { // some users may not read the table
			found.Add(true, driver.SeverityError, x.kind, fmt.Sprintf("the %s %q works on the tables: if it deletes or changes a row, held names are granted again", x.kind, name),
				"DROP "+strings.ToUpper(x.kind)+" `"+name+"`")
		})
	}
}

// reportWritableReplica reports a server that takes writes although it replicates another
// one. On MySQL, it reports nothing if the user may not read performance_schema.
func (s *server) reportWritableReplica(ctx context.Context, found *engine.Findings) {
	for _, statement := range []string{
		"SELECT variable_value > 0 FROM information_schema.global_status WHERE variable_name = 'SLAVES_RUNNING'",
		"SELECT service_state = 'ON' FROM performance_schema.replication_applier_status",
	} {
		running := false
		_ = s.queryRow(ctx, statement, &running)
		if running {
			found.Add(true, driver.SeverityWarning, "replication", "the server is a replica, and also takes writes: clients of the two servers can be granted the same name",
				"set read_only=1 on all servers except one, and give all clients the address of that one")
			return
		}
	}
}
