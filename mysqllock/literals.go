package mysqllock

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Statements contain their values, as numbers and in hexadecimal, except the most
// frequent one. So each statement is one round trip on any pool. With arguments it would
// take three, or the driver would have to prepare it on each connection, unless the
// caller has set interpolateParams. And no character set or sql_mode can change the
// values.

// withLiterals replaces the question marks of a statement by its arguments: bytes, a
// string of characters, a number, or nil.
func withLiterals(statement string, args []any) string {
	var b strings.Builder
	for i, arg := range args {
		before, after, _ := strings.Cut(statement, "?")
		b.WriteString(before)
		statement = after
		switch v := arg.(type) {
		case []byte:
			b.WriteString(literalOf(v))
		case string:
			b.WriteString("_utf8mb4 " + literalOf(v))
		case nil:
			b.WriteString("NULL")
		default:
			fmt.Fprintf(&b, "%d", args[i])
		}
	}
	return b.String() + statement
}

// literalOf returns a literal of bytes. Names are bytes, so that the server compares them
// byte by byte.
func literalOf[T string | []byte](b T) string { return "x'" + hex.EncodeToString([]byte(b)) + "'" }

func literalsOf(all []string) string {
	literals := make([]string, len(all))
	for i, s := range all {
		literals[i] = literalOf(s)
	}
	return strings.Join(literals, ", ")
}

// columnsOf returns the readable part of an entry, as arguments: the last fence, the
// holders, and when the last lease ends, or nil without holders. They show the state at
// the last write; no client updates them when a lease expires.
func columnsOf(e *locktable.Entry) []any {
	c := engine.ColumnsOf(e)
	holders := strings.ToValidUTF8(c.Holders, "?")
	if len(holders) > maxHolderChars {
		if chars := []rune(holders); len(chars) > maxHolderChars {
			holders = string(chars[:maxHolderChars]) + "..."
		}
	}
	if c.Until == 0 {
		return []any{c.Fence, holders, nil}
	}
	return []any{c.Fence, holders, c.Until.Time().Format("2006-01-02 15:04:05.000000")}
}

// maxHolderChars is the length at which Holders is cut, for a column of 255 characters.
const maxHolderChars = 250
