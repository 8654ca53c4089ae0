package sqlitelock

import (
	"fmt"

	sqldriver "database/sql/driver"

	"github.com/pawl-go/pawl/internal/engine"
)

// These constants identify a file of Pawl: "Pawl" as the header's application id, and the
// version of the schema.
const (
	applicationID = 0x5061776C
	schemaVersion = 3
)

// The table of entries has one row per name, in the order of the names' bytes. Without a
// rowid SQLite searches one tree instead of two.
//
// A waiter of a long queue has a row of its own, so the cost of a step does not grow with
// the length of the queue; see locktable.Rows. The indexes find a waiter by its position,
// by its token, and by its expiry.
//
// Each row of signals is a signal for the driver of its inbox. Readers remember the last
// id that they have read. So AUTOINCREMENT makes ids rise even after all rows were
// deleted.
//
// The single row of tidying has the name at which the search for old names continues.
const schema = `
CREATE TABLE entries (
	name  BLOB PRIMARY KEY,
	entry BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE waiters (
	id      INTEGER PRIMARY KEY,
	name    BLOB    NOT NULL,
	token   BLOB    NOT NULL,
	since   INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	waiter  BLOB    NOT NULL
);
CREATE INDEX waiters_place ON waiters (name, since);
CREATE UNIQUE INDEX waiters_token ON waiters (token, name);
CREATE INDEX waiters_lapse ON waiters (name, expires);

CREATE TABLE signals (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	inbox  TEXT    NOT NULL,
	token  BLOB    NOT NULL,
	kind   INTEGER NOT NULL,
	fence  INTEGER NOT NULL,
	fences INTEGER NOT NULL,
	at     INTEGER NOT NULL
);
CREATE INDEX signals_inbox ON signals (inbox, id);

CREATE TABLE tidying (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	cursor BLOB    NOT NULL,
	rest   INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO tidying VALUES (1, x'00', 0);
`

// longLogSize is twice the size, in bytes, at which SQLite checkpoints the log, see
// settings. SQLite's own checkpoints do not restart a log of this size.
const longLogSize = 8 << 20

// settings are the settings of every connection. NORMAL syncs at checkpoints only;
// without any sync a power cut could damage the file. A checkpoint for every 4000 pages,
// of a kilobyte each, makes these syncs rare.
const settings = `
PRAGMA busy_timeout = 0;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA trusted_schema = OFF;
`

// ensureSchema creates the tables in an empty file. It refuses a file of another
// application before it writes anything. While another process creates the tables,
// ensureSchema returns a busy error, and its caller retries.
func ensureSchema(c *conn) error {
	empty, err := checkSchema(c)
	if err != nil {
		return err
	}
	if empty {
		// Pages are small, because an entry has some hundred bytes, and each write logs
		// whole pages. This PRAGMA has no effect on a file that has pages.
		if err := c.script("PRAGMA page_size = 1024"); err != nil {
			return err
		}
	}
	mode, err := c.value("PRAGMA journal_mode = WAL")
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode stays %v: this filesystem cannot share memory between processes", mode)
	}
	if !empty {
		return nil
	}

	err = c.transaction(func() (err error) {
		empty, err = checkSchema(c) // another process may have created the tables
		if err == nil && empty {
			err = c.script(fmt.Sprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d;", schema, applicationID, schemaVersion))
		}
		return err
	})
	if err == nil && empty {
		_ = c.script(reserve)
	}
	return err
}

// reserve gives a new file some free pages, so that checkpoints, and so renewals and
// releases, still work for a while when the disk is full. It writes the pages before it
// frees them, so that the filesystem allocates them.
const reserve = `
CREATE TABLE reserve AS SELECT zeroblob(65536) AS room;
PRAGMA wal_checkpoint;
DROP TABLE reserve;
PRAGMA wal_checkpoint;
`

// checkSchema checks the tables of a file, without writing.
func checkSchema(c *conn) (empty bool, err error) {
	var app, version, tables int64
	var missing, triggers string
	err = c.forEachRow(selectSchema, func(row []sqldriver.Value) {
		app, version, tables = integer(row[0]), integer(row[1]), integer(row[2])
		missing, _ = row[3].(string)
		triggers, _ = row[4].(string)
	})
	if err != nil {
		return false, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return true, nil
	case app != applicationID:
		return false, &engine.ConfigError{
			Problem: fmt.Sprintf("it is the database of another application (application id %#x, %d tables and indexes)", app, tables),
			Hint:    "give locks a file of their own",
		}
	case version > schemaVersion:
		return false, &engine.ConfigError{
			Problem: fmt.Sprintf("its schema has version %d, and this program knows %d", version, schemaVersion),
			Hint:    "a newer Pawl made it: update this program, or give it a file of its own",
		}
	case version != schemaVersion:
		return false, &engine.ConfigError{Problem: "its tables are from a version before the first release", Hint: recreateHint}
	case missing != "":
		return false, &engine.ConfigError{Problem: "it lacks " + missing + " of its tables: they were dropped", Hint: recreateHint}
	case triggers != "":
		return false, &engine.ConfigError{
			Problem: "it has triggers: " + triggers,
			Hint:    "a trigger that deletes or changes a row frees a lock that is held: remove it with DROP TRIGGER, or give locks a file of their own",
		}
	}
	return false, nil
}

const (
	recreateHint = "stop every program that uses it, move it away with its -wal and -shm, then start them again; fences will still rise"

	selectSchema = `
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema),
	(SELECT group_concat(column1, ', ') FROM (VALUES ('entries'), ('waiters'), ('signals'), ('tidying'))
		WHERE column1 NOT IN (SELECT name FROM sqlite_schema WHERE type = 'table')),
	(SELECT group_concat(name, ', ') FROM sqlite_schema WHERE type = 'trigger')`
)
