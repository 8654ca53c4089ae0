package locktable

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// A Glimpse is what people could see of a name when it was last looked at: for a table
// that is shown each value of a name that is stored, and has to tell renewals from news.
// The zero value has seen nothing.
type Glimpse struct {
	seen  []byte
	taken bool
}

// News looks at what is stored now, which is nothing if it is empty, and reports whether
// people can see a difference.
func (g *Glimpse) News(stored []byte) bool {
	now := stored
	if e, err := decode(stored); err == nil { // else it is for whoever asks for it to say so
		now = e.visible()
	}
	news := !g.taken || !bytes.Equal(now, g.seen)
	g.seen, g.taken = now, true
	return news
}

// visible is the stored form of an entry without what people do not see, or see change by
// itself: who was broken, how long it all lasts, and what waiters ask for.
func (e *Entry) visible() []byte {
	v := *e
	v.Broken, v.Marks, v.Value.At, v.Rest.Lapses = nil, nil, 0, 0
	v.Holders, v.Queue = slices.Clone(e.Holders), slices.Clone(e.Queue)
	for i := range v.Holders {
		h := &v.Holders[i]
		h.Expires, h.LockDelay, h.Owner = 0, 0, driver.Owner{}
	}
	for i := range v.Queue {
		w := &v.Queue[i]
		w.Expires, w.LockDelay, w.Owner, w.Fences, w.Value, w.Above = 0, 0, driver.Owner{}, 0, nil, nil
	}
	return v.Append(nil)
}
