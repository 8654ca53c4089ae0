package natslock

import (
	"bytes"
	"context"
	"time"

	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// written is a swap that was sent, and then acknowledged.
type written struct {
	envelope    *stamped.Envelope
	key         string
	data        []byte // the envelope as it is stored
	sequence    uint64
	sent, acked time.Time
	lasts, kept time.Duration // how long the value matters if the swap counts, and in any case
}

func write(s *optimistic.Swap) *written {
	n, _ := s.Note.(seen)
	w := &written{envelope: stamped.Next(*s, n.void), key: keyOf(s.Name), sent: time.Now()}
	w.data = w.envelope.Append(nil)
	w.lasts = s.Window.From.Until(s.Entry.Ends())
	// If the swap does not count, its idea of the time was wrong. Then the value that it
	// replaced counts on, at most for as long as that value's holders expect.
	w.kept = max(w.lasts, n.lasts, 0)
	return w
}

// decide finds out whether a stored swap counts, which depends on its stamp. The
// acknowledgement does not have the stamp, so decide reads the message again, unless the
// listener has received the stamp.
func (s *store) decide(ctx context.Context, w *written, heard *stampListener) (optimistic.Swapped, error) {
	if stamp, ok := heard.stampOf(ctx, w.sequence); ok {
		return s.decideByStamp(w, &message{data: w.data, sequence: w.sequence, stamp: stamp, kept: w.kept})
	}
	m, err := s.from(ctx, w.key, w.sequence)
	switch {
	case err != nil:
		return optimistic.Swapped{}, err
	case m.sequence == w.sequence && bytes.Equal(m.data, w.data):
		return s.decideByStamp(w, m)
	case m.sequence == w.sequence: // the bucket has lost this swap
		return optimistic.Swapped{}, s.failed(errGone)
	case len(m.data) == 0:
		return w.done(), nil // an operator has deleted the key since
	}
	// A later swap has replaced this swap, and its envelope says whether w counted.
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

// done returns the result of a swap that counts.
func (w *written) done() optimistic.Swapped {
	return optimistic.Swapped{
		Done: true, Version: w.sequence, Note: seen{at: w.acked, void: w.envelope.Void, lasts: w.lasts},
	}
}

// decideByStamp decides on a swap that is still stored.
func (s *store) decideByStamp(w *written, m *message) (optimistic.Swapped, error) {
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
