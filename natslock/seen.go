package natslock

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// seen is what is known of a value beside its sequence: the note of optimistic.Stored.
type seen struct {
	at    time.Time     // when it was received, or what we sent was acknowledged
	void  []uint64      // see stamped.Envelope
	lasts time.Duration // how long it said something, from its stamp on
}

// fresh is how long what was seen of a name is relied on; then it is loaded again. A
// stream that lost data gives the same sequences again, and nothing tells a client whose
// own server goes on: a node of the cluster that had the bucket in its memory restarted,
// or a backup was restored. But a server that restarts takes longer than this. And a swap
// takes effect within the window that it was computed for, or never. So between the look
// at a value and what replaces it another one cannot get its sequence. The time counts
// from the answer: where answers take longer than this, no swap would be allowed else. So
// on such a link a value can be older by as long as its answer took.
const fresh = 250 * time.Millisecond

// seenLately reports whether the value that a swap replaces was seen so lately that its
// sequence cannot be another one's. That there is none is so whatever was lost.
func seenLately(s *optimistic.Swap) bool {
	n, _ := s.Note.(seen)
	return s.Version == 0 || time.Since(n.at) < fresh
}

// stored is what a message says of its name, if it was there at that time. People delete
// a key with a message that has no data.
func (m *message) stored(at time.Time) (optimistic.Stored, error) {
	is := optimistic.Stored{Version: m.sequence, Note: seen{at: at}}
	if len(m.data) == 0 {
		return is, nil
	}
	e, err := stamped.Open(m.data)
	if err != nil {
		return optimistic.Stored{}, err
	}
	is.Value = e.At(m.stamp)
	n := seen{at: at, void: e.VoidAt(m.sequence, m.stamp)}
	if entry, err := locktable.Decode(is.Value); err == nil { // else the table says so
		n.lasts = m.stamp.Until(entry.Ends())
	}
	if !e.InTime(m.stamp) {
		n.lasts = max(n.lasts, m.kept)
	}
	is.Note = n
	return is, nil
}
