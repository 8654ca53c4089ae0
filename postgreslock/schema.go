package postgreslock

import (
	"regexp"
	"strings"
)

// schemaVersion is the version of the tables below.
const schemaVersion = 1

// The table of locks has one row per name: columns for people, the version, and the
// entry. Half of each page is left free, and no index has a column that changes. So a new
// version of a row fits on the page of the old one, and no index changes.
//
// The table of tidying has one row: the position of the tidying, and the version of the
// tables.
const tables = `CREATE TABLE IF NOT EXISTS {locks} (
	name    text COLLATE "C" PRIMARY KEY,
	holders text NOT NULL DEFAULT '',
	fence   bigint NOT NULL DEFAULT 0,
	until   timestamptz,
	version bigint NOT NULL,
	entry   bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE TABLE IF NOT EXISTS {tidying} (
	one         boolean PRIMARY KEY DEFAULT true CHECK (one),
	version     integer NOT NULL,
	cursor_name text COLLATE "C" NOT NULL DEFAULT '',
	rest        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO {tidying} (version) VALUES (1) ON CONFLICT DO NOTHING;
`

// Schema returns the statements that create the tables. An administrator runs them if the
// user of the locks has no right to create tables. They change no existing table. The
// user needs USAGE of the schema, and SELECT, INSERT, UPDATE, DELETE on its tables.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return "CREATE SCHEMA IF NOT EXISTS " + identifier(options.Schema) + ";\n\n" + options.tables(), nil
}

// command returns the `pawl` command that prints the schema of these options.
func (o *Options) command() string {
	c := "pawl schema postgres"
	if o.Schema != "pawl" {
		c += " --schema " + shellQuote(o.Schema)
	}
	if o.Prefix != "" {
		c += " --prefix " + shellQuote(o.Prefix)
	}
	return c
}

// bareword matches a word that needs no quotes in a shell.
var bareword = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func shellQuote(word string) string {
	if bareword.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// tables returns the statements that create the tables in an existing schema.
func (o *Options) tables() string {
	return strings.NewReplacer("{locks}", o.table("locks"), "{tidying}", o.table("tidying")).Replace(tables)
}
