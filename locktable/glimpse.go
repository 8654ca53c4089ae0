package locktable

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// A Glimpse remembers what people could see of a name. It is for a table that sees every
// stored value of a name, and has to tell renewals from visible changes. The zero value
// has seen nothing.
type Glimpse struct {
	seen  []byte
	taken bool
}

// News compares the stored value, empty if there is none, with the last one, and reports
// whether people can see a difference.
func (g *Glimpse) News(stored []byte) bool {
	now := stored
	if e, err := decode(stored); err == nil { // if the entry is damaged, a reader reports that
		now = e.visible()
	}
	news := !g.taken || !bytes.Equal(now, g.seen)
	g.seen, g.taken = now, true
	return news
}

// visible returns the stored form of an entry without the fields that people do not see,
// and those that a renewal, a repeat or the passing of time changes.
func (e *Entry) visible() []byte {
	v := *e
	v.Broken, v.Marks, v.Value.At, v.Rest.Lapses = nil, nil, 0, 0
	v.Holders, v.Queue = slices.Clone(e.Holders), slices.Clone(e.Queue)
	for i := range v.Holders {
		h := &v.Holders[i]
		h.Expires, h.LockDelay, h.TTL, h.Owner = 0, 0, 0, driver.Owner{}
	}
	for i := range v.Queue {
		w := &v.Queue[i]
		w.Expires, w.LockDelay, w.TTL, w.Owner, w.Fences, w.Value, w.Above = 0, 0, 0, driver.Owner{}, 0, nil, nil
	}
	return v.Append(nil)
}
