package natslock

import (
	"bytes"
	"context"
	"time"

	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// written is a swap that is sent, and acknowledged.
type written struct {
	envelope    *stamped.Envelope
	key         string
	data        []byte // the envelope as it is stored
	sequence    uint64
	sent, acked time.Time
	lasts, kept time.Duration // how long it says something if it counts, and whether or not
}

func write(s *optimistic.Swap) *written {
	n, _ := s.Note.(seen)
	w := &written{envelope: stamped.Next(*s, n.void), key: keyOf(s.Name), sent: time.Now()}
	w.data = w.envelope.Append(nil)
	w.lasts = s.Window.From.Until(s.Entry.Ends())
	// If it does not count, it was computed from a wrong idea of the time, and what it
	// replaced counts on: for as long as its holders were told, at the most.
	w.kept = max(w.lasts, n.lasts, 0)
	return w
}

// judge says what became of a swap that is stored: whether it counts, which depends on
// its stamp. The acknowledgement does not have the stamp, so the message is read again,
// unless the stamp was heard.
func (s *store) judge(ctx context.Context, w *written, heard *stampListener) (optimistic.Swapped, error) {
	if stamp, ok := heard.stampOf(ctx, w.sequence); ok {
		return s.judgeStamp(w, &message{data: w.data, sequence: w.sequence, stamp: stamp, kept: w.kept})
	}
	m, err := s.from(ctx, w.key, w.sequence)
	switch {
	case err != nil:
		return optimistic.Swapped{}, err
	case m.sequence == w.sequence && bytes.Equal(m.data, w.data):
		return s.judgeStamp(w, m)
	case m.sequence == w.sequence: // the bucket lost ours since
		return optimistic.Swapped{}, s.failed(errGone)
	case len(m.data) == 0:
		return w.done(), nil // somebody deleted the key since, by hand
	}
	// Another swap has replaced it since, and knows.
	e, err := stamped.Open(m.data)
	if err != nil {
		return optimistic.Swapped{}, err
	}
	switch counted, known := e.Counted(w.sequence); {
	case !known:
		return optimistic.Swapped{}, s.failed(errReplaced)
	case counted:
		return w.done(), nil
	}
	s.clock.Late(w.envelope.Window)
	now, err := m.stored(w.acked)
	return optimistic.Swapped{Late: true, Known: true, Now: now}, err
}

// done says that it counts.
func (w *written) done() optimistic.Swapped {
	return optimistic.Swapped{
		Done: true, Version: w.sequence, Note: seen{at: w.acked, void: w.envelope.Void, lasts: w.lasts},
	}
}

// judgeStamp is judge for a swap that is still there.
func (s *store) judgeStamp(w *written, m *message) (optimistic.Swapped, error) {
	if w.envelope.InTime(m.stamp) {
		s.clock.InTime(w.envelope.Window)
		s.clock.Learn(m.stamp, w.sent, w.acked)
		return w.done(), nil
	}
	s.clock.Late(w.envelope.Window)
	s.clock.Learn(m.stamp, w.sent, w.acked)
	now, err := m.stored(w.acked)
	return optimistic.Swapped{Late: true, Known: true, Now: now}, err
}
