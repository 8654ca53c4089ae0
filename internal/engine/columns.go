package engine

import (
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Columns are the readable part of an entry in an SQL table. A client writes them along
// with the stored form. When a lease runs out, no client writes.
type Columns struct {
	Holders string            // the owners of the holders; empty if the name is free
	Fence   uint64            // the last fence granted
	Until   locktable.Instant // when the last of the leases runs out, unless its holder renews it; 0 without holders
}

// mostHolders is the number of holders that are listed.
const mostHolders = 8

// ColumnsOf returns the columns of an entry.
func ColumnsOf(e *locktable.Entry) Columns {
	c := Columns{Fence: e.Fence}
	var b strings.Builder
	for i, h := range e.Holders {
		c.Until = max(c.Until, h.Expires)
		switch {
		case i == mostHolders:
			b.WriteString(", ...")
		case i < mostHolders:
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(holder(h))
		}
	}
	c.Holders = b.String()
	return c
}

func holder(h locktable.Holder) string {
	switch who := h.Owner.String(); {
	case h.Token.IsZero():
		return who + " (released)"
	case h.Weight != driver.Exclusive:
		return who + " (shared)"
	default:
		return who
	}
}
