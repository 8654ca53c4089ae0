package mysqllock

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Statements have their values in them, as numbers and in hexadecimal, but for the one
// that is sent most. So each is one round trip, whatever pool it is given: arguments
// would take three, or a prepared statement for each connection, unless the caller has
// set interpolateParams; and nothing is left that a character set or an sql_mode could
// change.

// literally writes arguments into a statement, in the place of its question marks: bytes,
// a string of characters, a number, or nil.
func literally(statement string, args []any) string {
	var b strings.Builder
	for i, arg := range args {
		before, after, _ := strings.Cut(statement, "?")
		b.WriteString(before)
		statement = after
		switch v := arg.(type) {
		case []byte:
			b.WriteString(blob(v))
		case string:
			b.WriteString("_utf8mb4 " + blob(v))
		case nil:
			b.WriteString("NULL")
		default:
			fmt.Fprintf(&b, "%d", args[i])
		}
	}
	return b.String() + statement
}

// blob is a string of bytes. A name is one, for it is compared byte for byte.
func blob[T string | []byte](b T) string { return "x'" + hex.EncodeToString([]byte(b)) + "'" }

// blobs are several, for IN.
func blobs(all []string) string {
	each := make([]string, len(all))
	for i, s := range all {
		each[i] = blob(s)
	}
	return strings.Join(each, ", ")
}

// columns are what people can read of an entry, as arguments. They are as true as its
// stored form when they are written; nobody writes when a lease runs out.
type columns struct {
	fence   uint64
	holders string
	until   any // as the server writes it; nil without holders
}

func columnsOf(e *locktable.Entry) columns {
	c := engine.ColumnsOf(e)
	out := columns{fence: c.Fence, holders: strings.ToValidUTF8(c.Holders, "?")}
	if len(out.holders) > mostHolders {
		if who := []rune(out.holders); len(who) > mostHolders {
			out.holders = string(who[:mostHolders]) + "..."
		}
	}
	if c.Until > 0 {
		out.until = c.Until.Time().Format("2006-01-02 15:04:05.000000")
	}
	return out
}

// mostHolders is how many characters say who holds a name.
const mostHolders = 250
