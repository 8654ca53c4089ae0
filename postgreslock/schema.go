package postgreslock

import (
	"regexp"
	"strings"
)

// schemaVersion is that of the tables below.
const schemaVersion = 1

// One row per name: columns for people, and the entry, which is what counts. Half of each
// page is left free, and no index is on what changes, so that a new version of a row
// finds room beside the old one, and costs no index anything.
//
// A waiter of a long queue has a row of its own, so that a step costs what it changes,
// however many wait; see locktable.Rows.
//
// The row of tidying is where the forgetting of old names stands, and which version the
// tables have.
const tables = `CREATE TABLE IF NOT EXISTS {locks} (
	name    text COLLATE "C" PRIMARY KEY,
	holders text NOT NULL DEFAULT '',
	fence   bigint NOT NULL DEFAULT 0,
	until   timestamptz,
	version bigint NOT NULL,
	entry   bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE TABLE IF NOT EXISTS {waiters} (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name    text COLLATE "C" NOT NULL,
	token   bytea NOT NULL,
	since   bigint NOT NULL,
	expires bigint NOT NULL,
	waiter  bytea NOT NULL,
	UNIQUE (name, token)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS {waiters_place} ON {waiters} (name, since, id);

CREATE TABLE IF NOT EXISTS {tidying} (
	one         boolean PRIMARY KEY DEFAULT true CHECK (one),
	version     integer NOT NULL,
	cursor_name text COLLATE "C" NOT NULL DEFAULT '',
	rest        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO {tidying} (version) VALUES (1) ON CONFLICT DO NOTHING;
`

// Schema is what makes the tables, for an administrator who runs it so that the user
// of the locks needs no right to create anything. It does nothing to tables that there
// are. The user needs USAGE of the schema, and SELECT, INSERT, UPDATE, DELETE on its
// tables.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return "CREATE SCHEMA IF NOT EXISTS " + identifier(options.Schema) + ";\n\n" + options.tables(), nil
}

// command is the one of `pawl` that prints the schema of these options.
func (o *Options) command() string {
	c := "pawl schema postgres"
	if o.Schema != "pawl" {
		c += " --schema " + shell(o.Schema)
	}
	if o.Prefix != "" {
		c += " --prefix " + shell(o.Prefix)
	}
	return c
}

// bareword is what a shell takes as it is.
var bareword = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// shell is a word as a shell wants it.
func shell(word string) string {
	if bareword.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// tables makes them in the schema, which is there.
func (o *Options) tables() string {
	return strings.NewReplacer(
		"{locks}", o.table("locks"), "{waiters}", o.table("waiters"), "{tidying}", o.table("tidying"),
		"{waiters_place}", identifier(o.Prefix+"waiters_place"), // in the schema of its table
	).Replace(tables)
}
