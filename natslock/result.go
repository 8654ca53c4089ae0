package natslock

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// A write is a swap as the bucket stores it.
type write struct {
	message
	envelope    *stamped.Envelope
	key         string
	lasts       time.Duration // how long the value matters if the swap counts
	sent, acked time.Time
}

func newWrite(one *swap.Swap) *write {
	note, _ := one.StoreState.(loadNote)
	w := &write{envelope: stamped.Next(*one, note.void), key: keyOf(one.Name), lasts: one.Window.From.Until(one.Entry.Ends())}
	w.data = w.envelope.Append(nil)
	// If the swap does not count, its idea of the time was wrong. Then the value that it
	// replaced counts on, at most for as long as that value's holders expect.
	w.kept = max(w.lasts, note.lasts, 0)
	return w
}

// swapResult finds out whether an acknowledged write counts, which depends on its stamp.
// The acknowledgement does not have the stamp, so swapResult reads the message again,
// unless the stamp has arrived by itself.
func (s *store) swapResult(ctx context.Context, w *write, stamps <-chan *nats.Msg) (swap.Swapped, error) {
	last, err := &w.message, error(nil)
	if w.stamp = s.receiveStamp(ctx, stamps, w.sequence); w.stamp == 0 {
		if last, err = s.from(ctx, w.key, w.sequence); err != nil {
			return swap.Swapped{}, err
		}
	}
	counts, err := s.counts(w, last)
	if err != nil {
		return swap.Swapped{}, err
	}
	if counts {
		return swap.Swapped{
			Done: true, Version: w.sequence, StoreState: loadNote{at: w.acked, void: w.envelope.Void, lasts: w.lasts},
		}, nil
	}
	now, err := last.stored(w.acked)
	return swap.Swapped{OutsideWindow: true, Known: true, Now: now}, err
}

// counts reports whether a write counts, or counted until a later write replaced it. last
// is the last message of its key.
func (s *store) counts(w *write, last *message) (counts bool, err error) {
	own := last.sequence == w.sequence
	switch {
	case own && !bytes.Equal(last.data, w.data): // the bucket has lost this write
		return false, s.failed(errGone)
	case own:
		counts = w.envelope.InsideWindow(last.stamp)
	case len(last.data) == 0: // an operator has deleted the key since
		return true, nil
	default: // the envelope of a later write says whether this write counted
		e, err := stamped.Open(last.data)
		if err != nil {
			return false, err
		}
		known := false
		if counts, known = e.Counted(w.sequence); !known {
			return false, s.failed(errReplaced)
		}
	}
	if counts {
		s.clock.InsideWindow(w.envelope.Window)
	} else {
		s.clock.OutsideWindow(w.envelope.Window)
	}
	if own {
		s.clock.Learn(last.stamp, w.sent, w.acked)
	}
	return counts, nil
}

const (
	// The driver stops listening after maxMissedStamps consecutive stamps that did not
	// arrive.
	maxMissedStamps = 3

	// stampTimeout is the time for which the driver waits for a stamp that should be
	// there already.
	stampTimeout = 20 * time.Millisecond
)

// stampPrefix begins the subjects of a bucket's stamps. In a bucket that natslock has
// made, the leader sends the headers of each stored message to a subject for the
// message's key, before it acknowledges the message. If no stamp arrives, because a right
// is missing or a message is lost, the writer reads the message, as it does in a bucket
// that others have made.
func (s *store) stampPrefix() string { return "_PAWL." + s.o.Bucket + "." }

// sendsStamps reports whether the leader of a bucket with this configuration sends
// stamps.
func (s *store) sendsStamps(c *jetstream.StreamConfig) bool {
	return c.RePublish != nil && c.RePublish.Destination == s.stampPrefix()+">"
}

// listenForStamps returns a channel that receives the stamps of a key until stop is
// called, or nil if none will arrive.
func (s *store) listenForStamps(key string) (stamps chan *nats.Msg, stop func()) {
	if c := s.bucket.config.Load(); c != nil && s.sendsStamps(c) && s.missedStamps.Load() < maxMissedStamps {
		stamps = make(chan *nats.Msg, 64)
		if sub, err := s.nc.ChanSubscribe(s.stampPrefix()+key, stamps); err == nil {
			return stamps, func() { _ = sub.Unsubscribe() } // at worst the connection is closed already
		}
	}
	return nil, func() {}
}

// receiveStamp waits for the stamp of the message with this sequence, which the server
// has acknowledged. It returns 0 if none arrives.
func (s *store) receiveStamp(ctx context.Context, stamps <-chan *nats.Msg, sequence uint64) locktable.Instant {
	if stamps == nil {
		return 0
	}
	late := time.NewTimer(stampTimeout)
	defer late.Stop()
	for {
		select {
		case m := <-stamps:
			if m.Header.Get(jetstream.SequenceHeader) != strconv.FormatUint(sequence, 10) {
				continue // the stamp of another write of this key
			}
			t, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
			if err != nil {
				return 0
			}
			s.missedStamps.Store(0)
			return locktable.At(t)
		case <-late.C:
			s.missedStamps.Add(1)
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// loadNote is the note of swap.Stored, the facts about a value besides its
// sequence.
type loadNote struct {
	at    time.Time     // when the client received the value or its acknowledgement
	void  []uint64      // see stamped.Envelope
	lasts time.Duration // how long the value matters after its stamp
}

// maxLoadAge is the greatest age of a value that the client uses without reading it
// again. A stream loses data if another node, which had the bucket in its memory,
// restarts, or an operator restores a backup. It then gives the same sequences again. A
// client whose own server goes on does not notice that. But a server takes longer than
// maxLoadAge to restart, and a swap takes effect within its window, or never. So no other
// value can get the sequence of a value between its read and its swap. The age counts
// from the answer, because otherwise slower answers would allow no swap. With slower
// answers a value can be older than maxLoadAge by the time that its answer took.
const maxLoadAge = 250 * time.Millisecond

// isFresh reports whether the value that a swap replaces was read so recently that no
// other value can have its sequence. Version 0 means no value, so losing data cannot
// create one.
func isFresh(one *swap.Swap) bool {
	note, _ := one.StoreState.(loadNote)
	return one.Version == 0 || time.Since(note.at) < maxLoadAge
}

// stored returns the value in a message. at is the time from which the age of the value
// counts. Tools delete a key by a message without data.
func (m *message) stored(at time.Time) (swap.Stored, error) {
	if len(m.data) == 0 {
		return swap.Stored{Version: m.sequence, StoreState: loadNote{at: at}}, nil
	}
	e, err := stamped.Open(m.data)
	if err != nil {
		return swap.Stored{}, err
	}
	value, note := e.At(m.stamp), loadNote{at: at, void: e.VoidAt(m.sequence, m.stamp)}
	if entry, err := locktable.Decode(value); err == nil { // otherwise the table reports the damage
		note.lasts = m.stamp.Until(entry.Ends())
	}
	if !e.InsideWindow(m.stamp) {
		note.lasts = max(note.lasts, m.kept)
	}
	return swap.Stored{Value: value, Version: m.sequence, StoreState: note}, nil
}
