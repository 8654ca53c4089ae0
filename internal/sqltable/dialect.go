package sqltable

import (
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/locktable"
)

// A Dialect is what servers say differently. Its statements have a ? for each argument,
// or $1, $2, ... where they are Numbered.
//
// Names and other texts are sent, and answered, as bytes of UTF-8, {text} and
// {bytes e.name} in a statement: in a session of another encoding they would be others.
//
// There are three tables. Names compare byte for byte, and in that order:
//
//	entries (name PRIMARY KEY, version, entry, holders, fence, until)
//	waiters (id, ascending and drawn at the insertion; name, token, since, expires, waiter;
//	         an index on (name, since, id), a unique one on (name, token))
//	tidying (cursor_name, rest): one row
type Dialect struct {
	Entries, Waiters, Tidying string // the tables, quoted if need be
	Numbered                  bool

	Text  string                     // an argument of bytes as text: what stands for {text}
	Bytes func(column string) string // text as bytes

	// Now is an expression: the server's time in microseconds since 1970 as it is when
	// that is evaluated, not as it was when the statement or the transaction began.
	Now string

	// Lock makes the statement that locks the rows of n names, in the order of the names,
	// and returns (name, version, entry, now) of those that there are. now is read when
	// the row is locked, or later. nil: it is asked in a statement of its own. Beware: in
	// the target list of a SELECT FOR UPDATE a time is from before the wait.
	Lock func(n int) string

	// Insert adds an entry (name, version) with an empty value if there is none.
	Insert string

	// Store replaces rows that are there, and locked. It changes nothing if the server's
	// clock is past end, unless end is 0; then Statement.Rows can be -1.
	Store func(rows []Row, end locktable.Instant) Statement

	// Signal sends signals when the transaction is committed. nil: the server cannot.
	Signal func(all []locktable.Signal) Statement

	// Locked reports whether a transaction failed so because it would have had to wait
	// for a row for longer than it was to, see DB.
	Locked func(err error) bool

	// Passing reports whether a transaction that failed so is worth another try: what
	// stood in its way were others.
	Passing func(err error) bool
}

// A Statement is what is sent at once.
type Statement struct {
	SQL  string
	Args []any
	Rows int // how many rows it has to change; -1 if that is not in question
}

// A Row is what is stored of one name.
type Row struct {
	Name    string
	Version int64  // no two values of a name have the same
	Entry   []byte // the stored form of the entry, which is what counts
	Columns        // for people
}

// statement fills in the tables, the time and the numbers of arguments.
func (d *Dialect) statement(sql string) string {
	sql = strings.NewReplacer("{entries}", d.Entries, "{waiters}", d.Waiters, "{tidying}", d.Tidying, "{now}", d.Now, "{text}", d.Text,
		"{bytes name}", d.Bytes("name"), "{bytes e.name}", d.Bytes("e.name"), "{bytes cursor_name}", d.Bytes("cursor_name")).Replace(sql)
	if !d.Numbered {
		return sql
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(sql, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// statements are those of all dialects.
type statements struct {
	now, insert, remove                     string
	read, page                              string
	first, own, ahead, join, keep, leave    string
	lapse, ends                             string
	selectTidying, setTidying, some, forget string
}

func (d *Dialect) statements() statements {
	s := statements{
		now:    "SELECT {now}",
		insert: d.Insert,
		remove: "DELETE FROM {entries} WHERE name = {text}",

		read: "SELECT {bytes e.name}, e.entry, {now}, w.waiter FROM {entries} e LEFT JOIN {waiters} w ON w.name = e.name" +
			" WHERE e.name = {text} ORDER BY w.since, w.id",
		page: "SELECT {bytes e.name}, e.entry, {now}, w.waiter" +
			" FROM (SELECT name, entry FROM {entries} WHERE name >= {text} ORDER BY name LIMIT ?) e" +
			" LEFT JOIN {waiters} w ON w.name = e.name ORDER BY e.name, w.since, w.id",

		first: "SELECT id, waiter FROM {waiters} WHERE name = {text} ORDER BY since, id LIMIT ?",
		own:   "SELECT id, waiter FROM {waiters} WHERE name = {text} AND token = ?",
		ahead: "SELECT (SELECT count(*) FROM {waiters} WHERE name = {text} AND since < ?)" +
			" + (SELECT count(*) FROM {waiters} WHERE name = {text} AND since = ? AND id < ?)",
		join:  "INSERT INTO {waiters} (name, token, since, expires, waiter) VALUES ({text}, ?, ?, ?, ?)",
		keep:  "UPDATE {waiters} SET expires = ?, waiter = ? WHERE name = {text} AND token = ?",
		leave: "DELETE FROM {waiters} WHERE name = {text} AND token = ?",
		lapse: "DELETE FROM {waiters} WHERE name = {text} AND expires <= ?",
		ends:  "SELECT coalesce(min(expires), 0), coalesce(max(since), 0) FROM {waiters} WHERE name = {text}",

		selectTidying: "SELECT {bytes cursor_name}, rest, {now} FROM {tidying} FOR UPDATE",
		setTidying:    "UPDATE {tidying} SET cursor_name = {text}, rest = ?",
		some:          "SELECT {bytes name}, version, entry FROM {entries} WHERE name >= {text} ORDER BY name LIMIT ?",
		forget:        "DELETE FROM {entries} WHERE name = {text} AND version = ?",
	}
	for _, sql := range []*string{
		&s.now, &s.insert, &s.remove, &s.read, &s.page, &s.first, &s.own, &s.ahead, &s.join, &s.keep, &s.leave,
		&s.lapse, &s.ends, &s.selectTidying, &s.setTidying, &s.some, &s.forget,
	} {
		*sql = d.statement(*sql)
	}
	return s
}

// locking is the statement that locks n names, and whether the time comes with it.
func (d *Dialect) locking(n int) (sql string, timed bool) {
	if d.Lock != nil {
		return d.statement(d.Lock(n)), true
	}
	return d.statement("SELECT {bytes name}, version, entry, 0 FROM {entries} WHERE name IN (" + Texts(n) + ") ORDER BY name FOR UPDATE"), false
}

// Texts are n arguments that are texts.
func Texts(n int) string { return strings.TrimSuffix(strings.Repeat("{text}, ", n), ", ") }
