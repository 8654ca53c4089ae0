package postgreslock

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqltable"
	"github.com/pawl-go/pawl/locktable"
)

// clock is the server's time in microseconds since 1970, a number that no DateStyle
// changes: when it is asked, not when the transaction began. Functions are named with
// their schema everywhere: a session whose search_path has other ones of that name, such
// as a clock for tests, would see another time, or other names.
const clock = "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"

// dialect is what PostgreSQL says differently.
func (o *Options) dialect(h *hush) sqltable.Dialect {
	return sqltable.Dialect{
		Entries:  o.table("locks"),
		Waiters:  o.table("waiters"),
		Tidying:  o.table("tidying"),
		Numbered: true,
		Text:     text("?"),
		Bytes:    func(column string) string { return "pg_catalog.convert_to(" + column + ", 'UTF8')" },
		Now:      clock,
		Lock:     lock,
		Insert:   "INSERT INTO {entries} (name, version, entry) VALUES ({text}, ?, '') ON CONFLICT (name) DO NOTHING",
		Store:    replace,
		Signal:   h.notify,
		Locked:   isLocked,
		Passing:  func(err error) bool { return passing(err) || h.begins(err) },
	}
}

// text makes text of an argument that is sent as bytes of UTF-8. A string would be read
// in the encoding of the session: in one of LATIN1 "größe" would be another name.
// Statements are ASCII for the same reason.
func text(mark string) string { return "pg_catalog.convert_from(" + mark + ", 'UTF8')" }

// table is the full name of one.
func (o *Options) table(name string) string { return identifier(o.Schema, o.Prefix+name) }

// regclass is that name as an argument, see text.
func (o *Options) regclass(name string) []byte {
	return []byte(pgx.Identifier{o.Schema, o.Prefix + name}.Sanitize())
}

// identifier quotes a name, of several parts perhaps, in ASCII.
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

// lock asks the time above the locking: in the target list of the SELECT FOR UPDATE
// itself it would be from before the wait for a row that others had locked.
func lock(n int) string {
	return "WITH locked AS MATERIALIZED (SELECT name, version, entry FROM {entries} WHERE name IN (" + sqltable.Texts(n) +
		") ORDER BY name FOR UPDATE) SELECT {bytes name}, version, entry, {now} FROM locked"
}

// replace changes one row by itself, for that is planned and run fastest.
func replace(rows []sqltable.Row, end locktable.Instant) sqltable.Statement {
	var s sqltable.Statement
	if len(rows) == 1 {
		r := rows[0]
		s.SQL = "UPDATE {entries} SET version = ?, entry = ?, holders = {text}, fence = ?, until = ? WHERE name = {text}"
		s.Args = []any{r.Version, r.Entry, plain(r.Holders), int64(r.Fence), until(r.Until), []byte(r.Name)}
	} else {
		row := "({text}, ?::bigint, ?::bytea, {text}, ?::bigint, ?::timestamptz)"
		s.SQL = "UPDATE {entries} e SET version = n.version, entry = n.entry, holders = n.holders, fence = n.fence, until = n.until" +
			" FROM (VALUES " + strings.TrimSuffix(strings.Repeat(row+", ", len(rows)), ", ") +
			") n (name, version, entry, holders, fence, until) WHERE e.name = n.name"
		for _, r := range rows {
			s.Args = append(s.Args, []byte(r.Name), r.Version, r.Entry, plain(r.Holders), int64(r.Fence), until(r.Until))
		}
	}
	if s.Rows = -1; end != 0 {
		s.Rows = len(rows)
		s.SQL += " AND {now} <= ?"
		s.Args = append(s.Args, int64(end))
	}
	return s
}

// plain is what PostgreSQL takes for text: without NUL, and UTF-8.
func plain(s string) []byte {
	return []byte(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "?"))
}

func until(i locktable.Instant) sql.NullTime {
	return sql.NullTime{Time: i.Time(), Valid: i != 0}
}

// notify sends signals to the channels of their inboxes.
func notify(all []locktable.Signal) sqltable.Statement {
	s := sqltable.Statement{Rows: -1}
	var calls []string
	for _, to := range all {
		calls = append(calls, "pg_catalog.pg_notify(?, ?)")
		s.Args = append(s.Args, channel(to.Inbox), engine.EncodeSignal(to.Signal))
	}
	s.SQL = "SELECT " + strings.Join(calls, ", ")
	return s
}

// mark is the n-th placeholder.
func mark(n int) string { return "$" + strconv.Itoa(n) }

// channel is where the signals of an inbox come in.
func channel(inbox string) string { return "pawl:" + inbox }
