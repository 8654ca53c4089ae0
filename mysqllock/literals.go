package mysqllock

import (
	"encoding/hex"
	"strings"

	"github.com/pawl-go/pawl/internal/sqltable"
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

// columns are what people can read of an entry, as literals. They are as true as its
// stored form when they are written; nobody writes when a lease runs out.
type columns struct {
	fence          uint64
	holders, until string
}

func columnsOf(e *locktable.Entry) columns {
	c := sqltable.ColumnsOf(e)
	who := []rune(strings.ToValidUTF8(c.Holders, "?"))
	if len(who) > mostHolders {
		who = append(who[:mostHolders], []rune("...")...)
	}
	out := columns{fence: c.Fence, holders: "_utf8mb4 " + text(string(who)), until: "NULL"}
	if c.Until > 0 {
		out.until = "TIMESTAMP'" + c.Until.Time().Format("2006-01-02 15:04:05.000000") + "'"
	}
	return out
}

// mostHolders is how many characters say who holds a name.
const mostHolders = 250
