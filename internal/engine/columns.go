package engine

import (
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Columns are the readable part of an entry in an SQL table. A client writes them
// together with the stored form. They do not change when a lease expires.
type Columns struct {
	Holders string            // the owners of the holders; empty if the name is free
	Fence   uint64            // the last fence granted
	Until   locktable.Instant // when the last of the leases expires, unless its holder renews it; 0 without holders
}

// maxHolders is the largest number of holders that a column lists.
const maxHolders = 8

// ColumnsOf returns the columns of an entry.
func ColumnsOf(e *locktable.Entry) Columns {
	c := Columns{Fence: e.Fence}
	var b strings.Builder
	for i, h := range e.Holders {
		c.Until = max(c.Until, h.Expires)
		switch {
		case i == maxHolders:
			b.WriteString(", ...")
		case i < maxHolders:
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(holderText(h))
		}
	}
	c.Holders = b.String()
	return c
}

func holderText(h locktable.Holder) string {
	switch owner := h.Owner.String(); {
	case h.Token.IsZero():
		return owner + " (released)"
	case h.Weight != driver.Exclusive:
		return owner + " (shared)"
	default:
		return owner
	}
}
