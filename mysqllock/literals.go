package mysqllock

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/locktable"
)

// Statements have their values in them, as numbers and in hexadecimal. So each is one
// round trip, whatever pool it is given: arguments would take three, or a prepared
// statement for each connection, unless the caller has set interpolateParams; and nothing
// is left that a character set or an sql_mode could change.

// blob is a string of bytes.
func blob(b []byte) string { return "x'" + hex.EncodeToString(b) + "'" }

// text is a name, compared byte for byte.
func text(s string) string { return "x'" + hex.EncodeToString([]byte(s)) + "'" }

// texts are several, for IN.
func texts(all []string) string {
	each := make([]string, len(all))
	for i, s := range all {
		each[i] = text(s)
	}
	return strings.Join(each, ", ")
}

// columns are what people can read of an entry. They are as true as its stored form when
// they are written; nobody writes when a lease runs out.
type columns struct {
	fence   uint64
	holders string
	until   string
}

// mostHolders is how many characters say who holds a name.
const mostHolders = 250

func columnsOf(e *locktable.Entry) columns {
	var until locktable.Instant
	var who []string
	for _, h := range e.Holders {
		until = max(until, h.Expires)
		who = append(who, h.Owner.String())
	}
	c := columns{fence: e.Fence, until: "NULL"}
	if until > 0 {
		c.until = "'" + until.Time().Format("2006-01-02 15:04:05.000000") + "'"
	}
	c.holders = strings.ToValidUTF8(strings.Join(who, ", "), "?")
	if r := []rune(c.holders); len(r) > mostHolders {
		c.holders = string(r[:mostHolders]) + "..."
	}
	return c
}

func (c columns) names() string { return "fence, holders, until" }

func (c columns) values() string {
	return fmt.Sprintf("%d, _utf8mb4 %s, %s", c.fence, text(c.holders), c.until)
}

func (c columns) set() string {
	return fmt.Sprintf("fence = %d, holders = _utf8mb4 %s, until = %s", c.fence, text(c.holders), c.until)
}
