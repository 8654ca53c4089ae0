package natslock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// written is a swap that the server has acknowledged.
type written struct {
	swap        *optimistic.Swap
	envelope    *stamped.Envelope
	key         string
	sequence    uint64
	sent, acked time.Time
}

// judge says what became of a swap that is stored: whether it counts, which depends on
// its stamp. The acknowledgement does not have the stamp, so the message is read again.
func (s *store) judge(ctx context.Context, w *written) (optimistic.Swapped, error) {
	done := optimistic.Swapped{Done: true, Version: w.sequence, Note: w.envelope.Void}
	if w.trivial() && s.clock.Within(w.swap.Window, w.acked) {
		return done, nil
	}
	m, err := s.from(ctx, w.key, w.sequence)
	switch {
	case err != nil:
		return optimistic.Swapped{}, err
	case m.sequence == w.sequence:
		return s.judgeStamp(w, m)
	}
	// Another swap has replaced it since, and knows.
	if len(m.data) == 0 {
		return done, nil // but for people who delete keys; the next swap finds that out
	}
	e, err := stamped.Open(m.data)
	if err != nil {
		return optimistic.Swapped{}, err
	}
	counted, known := e.Counted(w.sequence)
	switch {
	case !known:
		return optimistic.Swapped{}, errReplaced
	case counted:
		return done, nil
	}
	s.clock.Late()
	now, err := m.stored()
	return optimistic.Swapped{Late: true, Known: true, Now: now}, err
}

// judgeStamp is judge for a swap that is still there.
func (s *store) judgeStamp(w *written, m *message) (optimistic.Swapped, error) {
	if !w.envelope.InTime(m.stamp) {
		s.clock.Late()
		s.clock.Learn(m.stamp, w.sent, w.acked)
		now, err := m.stored()
		return optimistic.Swapped{Late: true, Known: true, Now: now}, err
	}
	s.clock.InTime()
	s.clock.Learn(m.stamp, w.sent, w.acked)
	return optimistic.Swapped{Done: true, Version: w.sequence, Note: w.envelope.Void}, nil
}

// trivial reports whether nobody relies on a swap: it leaves nobody who holds the name or
// waits for it, and nobody is told. That is the release of most locks. If the server's
// clock was set just then, and it is void, the lease that it ended lasts for its TTL.
func (w *written) trivial() bool {
	e := w.swap.Entry
	return len(e.Holders)+len(e.Queue)+len(e.Signals) == 0
}
