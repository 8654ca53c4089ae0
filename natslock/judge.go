package natslock

import (
	"context"
	"math"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// written is a swap that the server has acknowledged.
type written struct {
	envelope    *stamped.Envelope
	key         string
	data        []byte // the envelope as it is stored
	sequence    uint64
	sent, acked time.Time
	timeless    bool
}

// always is the window of what does not depend on the time.
var always = optimistic.Window{From: math.MinInt64, To: math.MaxInt64}

// timeless reports whether a swap is the same at any time: it ends the only lease of a
// name, which is not over yet, and nobody waits, and it has no end itself. That is the
// release of most locks.
func timeless(s *optimistic.Swap) bool {
	if s.OnTime || !quiet(s.Entry, 0) {
		return false
	}
	was, err := locktable.Decode(s.Was)
	return err == nil && quiet(was, 1) && was.Holders[0].Expires > s.Window.From && was.Value.At == s.Entry.Value.At
}

// quiet reports whether an entry has so many holders, and nothing else that passes.
func quiet(e *locktable.Entry, holders int) bool {
	return len(e.Holders) == holders && len(e.Queue)+len(e.Broken)+len(e.Signals) == 0 && e.Closed == 0
}

// judge says what became of a swap that is stored: whether it counts, which depends on
// its stamp. The acknowledgement does not have the stamp, so the message is read again,
// unless the stamp was heard.
func (s *store) judge(ctx context.Context, w *written, heard *stampListener) (optimistic.Swapped, error) {
	done := optimistic.Swapped{Done: true, Version: w.sequence, Note: w.envelope.Void}
	if w.timeless {
		return done, nil
	}
	if stamp, ok := heard.stampOf(ctx, w.sequence); ok {
		return s.judgeStamp(w, &message{data: w.data, sequence: w.sequence, stamp: stamp})
	}
	m, err := s.from(ctx, w.key, w.sequence)
	switch {
	case err != nil:
		return optimistic.Swapped{}, err
	case m.sequence == w.sequence:
		return s.judgeStamp(w, m)
	case len(m.data) == 0:
		return done, nil // somebody deleted the key since, by hand
	}
	// Another swap has replaced it since, and knows.
	e, err := stamped.Open(m.data)
	if err != nil {
		return optimistic.Swapped{}, err
	}
	switch counted, known := e.Counted(w.sequence); {
	case !known:
		return optimistic.Swapped{}, s.trouble(errReplaced)
	case counted:
		return done, nil
	}
	s.clock.Late(w.envelope.Window)
	now, err := m.stored()
	return optimistic.Swapped{Late: true, Known: true, Now: now}, err
}

// judgeStamp is judge for a swap that is still there.
func (s *store) judgeStamp(w *written, m *message) (optimistic.Swapped, error) {
	if w.envelope.InTime(m.stamp) {
		s.clock.InTime(w.envelope.Window)
		s.clock.Learn(m.stamp, w.sent, w.acked)
		return optimistic.Swapped{Done: true, Version: w.sequence, Note: w.envelope.Void}, nil
	}
	s.clock.Late(w.envelope.Window)
	s.clock.Learn(m.stamp, w.sent, w.acked)
	now, err := m.stored()
	return optimistic.Swapped{Late: true, Known: true, Now: now}, err
}
