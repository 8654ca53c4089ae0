package natslock

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// seen is the note of optimistic.Stored, the facts about a value besides its sequence.
type seen struct {
	at    time.Time     // when the client received the value or its acknowledgement
	void  []uint64      // see stamped.Envelope
	lasts time.Duration // how long the value matters after its stamp
}

// maxValueAge is the greatest age of a value that the client uses without reading it
// again. A stream loses data if another node, which had the bucket in its memory,
// restarts, or an operator restores a backup. It then gives the same sequences again. A
// client whose own server goes on does not notice that. But a server takes longer than
// maxValueAge to restart, and a swap takes effect within its window, or never. So no
// other value can get the sequence of a value between its read and its swap. The age
// counts from the answer, because otherwise slower answers would allow no swap. With
// slower answers a value can be older than maxValueAge by the time that its answer took.
const maxValueAge = 250 * time.Millisecond

// isFresh reports whether the value that a swap replaces was read so recently that no
// other value can have its sequence. Version 0 means no value, so losing data cannot
// create one.
func isFresh(s *optimistic.Swap) bool {
	n, _ := s.Note.(seen)
	return s.Version == 0 || time.Since(n.at) < maxValueAge
}

// stored returns the value in a message. at is the time from which the age of the value
// counts. Tools delete a key by a message without data.
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
	if entry, err := locktable.Decode(is.Value); err == nil { // otherwise the table reports the damage
		n.lasts = m.stamp.Until(entry.Ends())
	}
	if !e.InTime(m.stamp) {
		n.lasts = max(n.lasts, m.kept)
	}
	is.Note = n
	return is, nil
}
