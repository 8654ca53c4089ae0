package natslock

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// seen has the facts about a value besides its sequence: the note of optimistic.Stored.
type seen struct {
	at    time.Time     // when we received it, or the server acknowledged it
	void  []uint64      // see stamped.Envelope
	lasts time.Duration // how long its value matters, from its stamp on
}

// maxValueAge is the age up to which a value that was read may be used; then the client
// reads it again. A stream that lost data gives the same sequences again: another node,
// which had the bucket in its memory, restarted, or an operator restored a backup. A
// client whose own server goes on does not notice that. But a server takes longer than
// maxValueAge to restart, and a swap takes effect within the window that it was computed
// for, or never. So between reading a value and replacing it, no other value can get its
// sequence. The time counts from the answer, because otherwise no swap would be allowed
// if answers take longer than this. On such a link a value can be older than maxValueAge,
// by as long as its answer took.
const maxValueAge = 250 * time.Millisecond

// isFresh reports whether the value that a swap replaces was read so recently that no
// other value can have its sequence. Version 0 means no value, so losing data cannot
// create one.
func isFresh(s *optimistic.Swap) bool {
	n, _ := s.Note.(seen)
	return s.Version == 0 || time.Since(n.at) < maxValueAge
}

// stored returns the value in a message. at is the time from which the age of the value
// counts. Tools delete a key with a message without data.
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
