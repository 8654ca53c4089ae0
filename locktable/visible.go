package locktable

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// A VisibleState keeps the visible state of a name. It is for a table that gets every
// stored value of a name, and has to distinguish visible changes from renewals. The zero
// value is ready.
type VisibleState struct {
	last  []byte
	known bool
}

// Changed compares the stored value with the last one, and reports whether the difference
// is visible in Inspect. stored is empty if there is no entry.
func (g *VisibleState) Changed(stored []byte) bool {
	now := stored
	if e, err := decode(stored); err == nil { // if the entry is damaged, a reader reports that
		now = e.visible()
	}
	changed := !g.known || !bytes.Equal(now, g.last)
	g.last, g.known = now, true
	return changed
}

// visible returns the stored form of an entry without fields that Inspect does not show,
// that never change, or that a renewal, a repeated claim or the passing of time changes.
func (e *Entry) visible() []byte {
	v := *e
	v.Broken, v.Marks, v.Value.At, v.Overflow.FirstExpiry = nil, nil, 0, 0
	v.Holders, v.Queue = slices.Clone(e.Holders), slices.Clone(e.Queue)
	for i := range v.Holders {
		h := &v.Holders[i]
		h.Expires, h.LockDelay, h.TTL, h.Owner = 0, 0, 0, driver.Owner{}
	}
	for i := range v.Queue {
		w := &v.Queue[i]
		w.Expires, w.LockDelay, w.TTL, w.Owner, w.Fences, w.Value, w.ValueBelow = 0, 0, 0, driver.Owner{}, 0, nil, nil
	}
	return v.Append(nil)
}
