package postgreslock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/locktable"
)

// statements are all the statements that the steps of a client send.
type statements struct {
	load, page                                    string
	swapOne, swapFree, swapNew, swapMany, swapAll string // see swaps.go
	selectTidying, setTidying, forget             string
}

// clock is the server's time in microseconds since 1970, a number that no DateStyle
// changes. It is the time of the call, not of the beginning of the transaction. Every
// statement names the schema of its functions, because search_path may find others first,
// such as a clock for tests. unnest of several arrays needs no schema: PostgreSQL always
// takes its own.
const clock = "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"

// timeInWindow is the server's time. After the window it fails with tooLateState, because
// it divides by version - version, which is 0. The planner cannot compute this in
// advance, without a row.
const (
	timeInWindow = "CASE WHEN pg_catalog.clock_timestamp() <= $9 THEN " + clock + " ELSE 1 / (version - version) END"
	tooLateState = "22012"
)

// lockTimeout bounds a swap's wait for a row that another transaction has locked. It is
// a part of each condition, because a pooler may drop a setting of the session.
const lockTimeout = " AND pg_catalog.set_config('lock_timeout', $10, true) IS NOT NULL"

func (o *Options) statements() *statements {
	sql := strings.NewReplacer("{locks}", o.table("locks"), "{tidying}", o.table("tidying"), "{now}", clock,
		"{name}", toText("$1"), "{n.name}", toText("n.name"), "{holders}", toText("$5"), "{n.holders}", toText("n.holders"),
		"{bytes name}", toBytes("name"), "{bytes cursor_name}", toBytes("cursor_name")).Replace
	return &statements{
		load: sql("SELECT n.i, l.version, l.entry, {now} FROM pg_catalog.unnest($1::bytea[]) WITH ORDINALITY n (name, i) LEFT JOIN {locks} l ON l.name = {n.name} COLLATE \"C\""),
		swapOne: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + lockTimeout + " RETURNING " + timeInWindow),
		swapFree: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" +
			" AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'" + lockTimeout + " RETURNING " + timeInWindow),
		swapNew: sql("INSERT INTO {locks} (name, version, entry, holders, fence, until)" +
			" SELECT {name}, $3::bigint, $4::bytea, {holders}, $6::bigint, $7::timestamptz" +
			" WHERE $2::bigint = 0 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + lockTimeout + " ON CONFLICT (name) DO NOTHING RETURNING " + timeInWindow),
		// swapMany skips rows that other transactions have locked. So it waits for none
		// of them, and two such statements cannot deadlock.
		swapMany: sql("WITH free AS MATERIALIZED (SELECT n.* FROM {locks} l" +
			" JOIN unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::timestamptz[])" +
			" AS n (name, was, version, entry, holders, fence, until) ON l.name = {n.name} COLLATE \"C\" AND l.version = n.was" +
			" WHERE pg_catalog.clock_timestamp() BETWEEN $8 AND $9 FOR UPDATE OF l SKIP LOCKED)" +
			" UPDATE {locks} l SET version = n.version, entry = n.entry, holders = {n.holders}, fence = n.fence, until = n.until" +
			" FROM free n WHERE l.name = {n.name} COLLATE \"C\" RETURNING n.name, {now}"),

		// swapAll locks the rows in the order of their names, and changes them if all
		// versions are as expected. If a new row already exists, or the window is over,
		// the last SELECT fails, and so undoes the changes.
		swapAll: sql("WITH n AS MATERIALIZED (SELECT {n.name} COLLATE \"C\" AS name, was, version, entry, {n.holders} AS holders, fence, until" +
			" FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::timestamptz[])" +
			" AS n (name, was, version, entry, holders, fence, until))," +
			" locked AS MATERIALIZED (SELECT l.name FROM {locks} l JOIN n ON l.name = n.name AND l.version = n.was" +
			" WHERE pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + lockTimeout + " ORDER BY l.name FOR UPDATE OF l)," +
			" known AS MATERIALIZED (SELECT (SELECT pg_catalog.count(*) FROM locked) = (SELECT pg_catalog.count(*) FROM n WHERE was <> 0) AS yes)," +
			" changed AS (UPDATE {locks} l SET version = n.version, entry = n.entry, holders = n.holders, fence = n.fence, until = n.until" +
			" FROM n WHERE l.name = n.name AND n.was <> 0 AND (SELECT yes FROM known) RETURNING 1)," +
			" made AS (INSERT INTO {locks} (name, version, entry, holders, fence, until)" +
			" SELECT name, version, entry, holders, fence, until FROM n WHERE was = 0 AND (SELECT yes FROM known)" +
			" AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + lockTimeout + " ORDER BY name ON CONFLICT (name) DO NOTHING RETURNING 1)," +
			" counted AS MATERIALIZED (SELECT (SELECT pg_catalog.count(*) FROM changed) + (SELECT pg_catalog.count(*) FROM made) AS total, (SELECT pg_catalog.count(*) FROM n) AS wanted)," +
			" done AS (SELECT CASE WHEN total = wanted AND pg_catalog.clock_timestamp() <= $9 THEN {now} ELSE 1 / (wanted - wanted) END AS now" +
			" FROM counted WHERE total > 0)"),

		page: sql("SELECT {bytes name}, version, entry, {now} FROM {locks} WHERE name >= {name} AND {bytes name} >= $2 ORDER BY name LIMIT $3"),

		selectTidying: sql("SELECT {bytes cursor_name}, rest, {now} FROM {tidying}"),
		setTidying:    sql("UPDATE {tidying} SET cursor_name = {name}, rest = $2"),
		forget: sql("DELETE FROM {locks} WHERE name = {name} AND version = $2" +
			" AND pg_catalog.set_config('lock_timeout', '10ms', true) IS NOT NULL"),
	}
}

// toText returns SQL that converts an argument, sent as bytes of UTF-8, to text. The
// server would decode a string with the encoding of the session: with LATIN1, "größe"
// would be another name. Statements are ASCII for the same reason.
func toText(argument string) string { return "pg_catalog.convert_from(" + argument + ", 'UTF8')" }

// toBytes returns SQL that converts a column to bytes of UTF-8.
func toBytes(column string) string { return "pg_catalog.convert_to(" + column + ", 'UTF8')" }

func placeholder(n int) string { return "$" + strconv.Itoa(n) }

func (o *Options) table(name string) string { return identifier(o.Schema, o.Prefix+name) }

// locationSuffix returns the part of location after the database.
func (o *Options) locationSuffix() (suffix string) {
	if o.Schema != "pawl" {
		suffix = " schema=" + o.Schema
	}
	if o.Prefix != "" {
		suffix += " prefix=" + o.Prefix
	}
	return suffix
}

// regclass returns the name of a table as an argument of toText.
func (o *Options) regclass(name string) []byte {
	return []byte(pgx.Identifier{o.Schema, o.Prefix + name}.Sanitize())
}

// identifier quotes a name, which may have several parts, in ASCII.
func identifier(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = pgx.Identifier{part}.Sanitize()
		if strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf }) {
			quoted[i] = "U&" + beyondASCII.ReplaceAllStringFunc(quoted[i], func(c string) string {
				return fmt.Sprintf(`\+%06x`, []rune(c)[0])
			})
		}
	}
	return strings.Join(quoted, ".")
}

// beyondASCII matches a character that identifier escapes.
var beyondASCII = regexp.MustCompile(`[^[:ascii:]]|\\`)

// validText removes bytes that PostgreSQL refuses in text: NUL, and invalid UTF-8.
func validText(s string) []byte {
	return []byte(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "?"))
}

// timestamp converts an instant to a timestamp of the server, NULL for 0.
func timestamp(i locktable.Instant) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: i.Time(), Valid: i != 0}
}
