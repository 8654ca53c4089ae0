package postgreslock

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// statements are all the statements that the steps of a client send.
type statements struct {
	load, swapOne, swapFree, swapNew, swapMany string // for Load and Swap

	lock                           func(names int) string // for a transaction
	insert, remove, update         string
	first, own, ahead              string
	join, keep, leave, lapse, ends string
	readWaiter, keepOnly           string // see store.keepPlace

	read, page                              string
	selectTidying, setTidying, some, forget string
}

// clock is the server's time in microseconds since 1970, a number that no DateStyle
// changes. It is the time of the call, not of the beginning of the transaction. Every
// statement names the schema of its functions: a search_path may put others first, such
// as a clock for tests, and a session would see another time, or other names.
const clock = "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"

// inTime is the server's time. After the window it fails with the state tooLate: it
// divides by version - version, a 0 that the planner cannot compute without a row.
const (
	inTime  = "CASE WHEN pg_catalog.clock_timestamp() <= $9 THEN " + clock + " ELSE 1 / (version - version) END"
	tooLate = "22012"
)

// soon bounds how long a swap waits for a row that another transaction has locked;
// Transact decides which steps wait longer. The setting is a part of each condition,
// because a pooler would drop a setting of the session.
const soon = " AND pg_catalog.set_config('lock_timeout', '10ms', true) IS NOT NULL"

func (o *Options) statements() *statements {
	sql := strings.NewReplacer("{locks}", o.table("locks"), "{waiters}", o.table("waiters"), "{tidying}", o.table("tidying"), "{now}", clock,
		"{name}", text("$1"), "{n.name}", text("n.name"), "{holders}", text("$5"), "{n.holders}", text("n.holders"),
		"{bytes name}", octets("name"), "{bytes e.name}", octets("e.name"), "{bytes cursor_name}", octets("cursor_name")).Replace
	return &statements{
		load: sql("SELECT n.i, l.version, l.entry, {now} FROM pg_catalog.unnest($1::bytea[]) WITH ORDINALITY n (name, i) LEFT JOIN {locks} l ON l.name = {n.name} COLLATE \"C\""),
		swapOne: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + soon + " RETURNING " + inTime),
		swapFree: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" +
			" AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'" + soon + " RETURNING " + inTime),
		swapNew: sql("INSERT INTO {locks} (name, version, entry, holders, fence, until)" +
			" SELECT {name}, $3::bigint, $4::bytea, {holders}, $6::bigint, $7::timestamptz" +
			" WHERE $2::bigint = 0 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + soon + " ON CONFLICT (name) DO NOTHING RETURNING " + inTime),
		// swapMany skips rows that other transactions have locked. So it waits for none
		// of them, and two such statements cannot deadlock.
		swapMany: sql("WITH free AS MATERIALIZED (SELECT n.* FROM {locks} l" +
			" JOIN unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::timestamptz[])" +
			" AS n (name, was, version, entry, holders, fence, until) ON l.name = {n.name} COLLATE \"C\" AND l.version = n.was" +
			" WHERE pg_catalog.clock_timestamp() BETWEEN $8 AND $9 FOR UPDATE OF l SKIP LOCKED)" +
			" UPDATE {locks} l SET version = n.version, entry = n.entry, holders = {n.holders}, fence = n.fence, until = n.until" +
			" FROM free n WHERE l.name = {n.name} COLLATE \"C\" RETURNING n.name, {now}"),

		// The outer SELECT asks the time. In the target list of SELECT FOR UPDATE itself,
		// the time would be from before the wait for a locked row.
		lock: func(names int) string {
			in := make([]string, names)
			for i := range in {
				in[i] = text(mark(i + 1))
			}
			return sql("WITH locked AS MATERIALIZED (SELECT name, version, entry FROM {locks} WHERE name IN (" + strings.Join(in, ", ") +
				") ORDER BY name FOR UPDATE) SELECT {bytes name}, entry, {now} FROM locked")
		},
		insert: sql("INSERT INTO {locks} (name, version, entry) VALUES ({name}, $2, '') ON CONFLICT (name) DO NOTHING"),
		remove: sql("DELETE FROM {locks} WHERE name = {name}"),
		update: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND {now} <= $2"),

		// first and own lock rows, because a waiter may keep its place meanwhile, see
		// store.keepPlace.
		first: sql("SELECT id, waiter FROM {waiters} WHERE name = {name} ORDER BY since, id LIMIT $2 FOR UPDATE"),
		own:   sql("SELECT id, waiter FROM {waiters} WHERE name = {name} AND token = $2 FOR UPDATE"),
		ahead: sql("SELECT (SELECT count(*) FROM {waiters} WHERE name = {name} AND since < $2)" +
			" + (SELECT count(*) FROM {waiters} WHERE name = {name} AND since = $2 AND id < $3)"),
		readWaiter: sql("SELECT e.entry, {now}, w.waiter, (SELECT count(*) FROM {waiters} a WHERE a.name = w.name AND (a.since, a.id) < (w.since, w.id))" +
			" FROM {locks} e JOIN {waiters} w ON w.name = e.name AND w.token = $2 WHERE e.name = {name}"),
		keepOnly: sql("UPDATE {waiters} SET expires = $3, waiter = $4 WHERE name = {name} AND token = $2 AND waiter = $5 AND expires > {now}" +
			" AND {now} BETWEEN $6 AND $7" + soon),
		join:  sql("INSERT INTO {waiters} (name, token, since, expires, waiter) VALUES ({name}, $2, $3, $4, $5)"),
		keep:  sql("UPDATE {waiters} SET expires = $3, waiter = $4 WHERE name = {name} AND token = $2"),
		leave: sql("DELETE FROM {waiters} WHERE name = {name} AND token = $2"),
		lapse: sql("DELETE FROM {waiters} WHERE name = {name} AND expires <= $2"),
		ends:  sql("SELECT count(*), coalesce(min(expires), 0), coalesce(max(since), 0) FROM {waiters} WHERE name = {name}"),

		read: sql("SELECT {bytes e.name}, e.entry, {now}, w.waiter FROM {locks} e LEFT JOIN {waiters} w ON w.name = e.name" +
			" WHERE e.name = {name} ORDER BY w.since, w.id"),
		page: sql("SELECT {bytes e.name}, e.entry, {now}, w.waiter" +
			" FROM (SELECT name, entry FROM {locks} WHERE name >= {name} ORDER BY name LIMIT $2) e" +
			" LEFT JOIN {waiters} w ON w.name = e.name ORDER BY e.name, w.since, w.id"),

		selectTidying: sql("SELECT {bytes cursor_name}, rest, {now} FROM {tidying} FOR UPDATE"),
		setTidying:    sql("UPDATE {tidying} SET cursor_name = {name}, rest = $2"),
		some:          sql("SELECT {bytes name}, version, entry FROM {locks} WHERE name >= {name} ORDER BY name LIMIT $2"),
		forget:        sql("DELETE FROM {locks} WHERE name = {name} AND version = $2"),
	}
}

// text turns an argument, sent as bytes of UTF-8, into text. The server would read a
// string in the encoding of the session: with LATIN1, "größe" would be another name.
// Statements are ASCII for the same reason.
func text(mark string) string { return "pg_catalog.convert_from(" + mark + ", 'UTF8')" }

// octets is the opposite of text, for a column.
func octets(column string) string { return "pg_catalog.convert_to(" + column + ", 'UTF8')" }

// mark returns the n-th placeholder.
func mark(n int) string { return "$" + strconv.Itoa(n) }

func (o *Options) table(name string) string { return identifier(o.Schema, o.Prefix+name) }

// tail names the tables in messages: the schema and the prefix unless they are the
// defaults.
func (o *Options) tail() (tail string) {
	if o.Schema != "pawl" {
		tail = " schema=" + o.Schema
	}
	if o.Prefix != "" {
		tail += " prefix=" + o.Prefix
	}
	return tail
}

// regclass returns the name of a table as an argument, see text.
func (o *Options) regclass(name string) []byte {
	return []byte(pgx.Identifier{o.Schema, o.Prefix + name}.Sanitize())
}

// identifier quotes a name, which may have several parts, in ASCII.
func identifier(parts ...string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte('.')
		}
		quoted := pgx.Identifier{part}.Sanitize()
		if !strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf }) {
			b.WriteString(quoted)
			continue
		}
		b.WriteString("U&")
		for _, r := range quoted {
			switch {
			case r == '\\':
				b.WriteString(`\\`)
			case r < utf8.RuneSelf:
				b.WriteRune(r)
			default:
				fmt.Fprintf(&b, `\+%06x`, r)
			}
		}
	}
	return b.String()
}

// plain removes what PostgreSQL does not take as text: NUL, and invalid UTF-8.
func plain(s string) []byte {
	return []byte(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "?"))
}

// moment converts an instant to a timestamp of the server, NULL for 0.
func moment(i locktable.Instant) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: i.Time(), Valid: i != 0}
}

// columnsOf returns the columns that a step changes, beginning with version, as
// arguments.
func columnsOf(version int64, stored []byte, e *locktable.Entry) []any {
	c := engine.ColumnsOf(e)
	return []any{version, stored, plain(c.Holders), int64(c.Fence), moment(c.Until)}
}

// notifications returns the calls that send signals to the channels of their inboxes, as
// a list of columns, and their arguments. The first argument has the given number.
func notifications(all []locktable.Signal, number int) (calls string, args []any) {
	for i, to := range all {
		if i > 0 {
			calls += ", "
		}
		calls += "pg_catalog.pg_notify(" + mark(number+2*i) + ", " + mark(number+2*i+1) + ")"
		args = append(args, channel(to.Inbox), engine.EncodeSignal(to.Signal))
	}
	return calls, args
}

// channel is the channel on which the client of an inbox listens.
func channel(inbox string) string { return "pawl:" + inbox }
