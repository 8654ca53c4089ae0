package natslock

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// Swap implements swap.Store.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	all := make([]swap.Swapped, len(swaps))
	inParallel(len(swaps), func(i int) {
		var err error
		if all[i], err = s.swap(ctx, &swaps[i]); err != nil {
			all[i] = swap.Swapped{Err: err}
		}
	})
	return all, nil
}

// A write is a swap as the bucket stores it.
type write struct {
	message
	envelope    *stamped.Envelope
	key         string
	neededFor   time.Duration // the time for which the value is needed if the swap counts
	sent, acked time.Time
}

// maxLoadAge is the greatest age of a value that the client replaces without reading it
// again. A stream loses data if the server that has the bucket in memory restarts, or an
// operator restores a backup. Then the stream repeats sequences. A client that is
// connected to another server does not notice. But a restart takes longer than
// maxLoadAge, and a swap takes effect within its window, or never. So between the read of
// a value and its swap, no other value can get its sequence. The age counts from the
// answer to the read: if it counted from the request, a slow server would allow no swap.
// So the true age may exceed maxLoadAge by the duration of the read.
const maxLoadAge = 250 * time.Millisecond

// swap publishes the new value, which counts if its stamp is in the window.
func (s *store) swap(ctx context.Context, sw *swap.Swap) (swap.Swapped, error) {
	if err := s.ready(ctx); err != nil {
		return swap.Swapped{}, err
	}
	note, _ := sw.StoreState.(loadNote)
	if sw.Version != 0 && time.Since(note.receivedAt) >= maxLoadAge {
		return swap.Swapped{}, nil // version 0 is always fresh, because a loss of data cannot create a value
	}
	if err := s.checkSize(sw); err != nil {
		return swap.Swapped{}, err
	}
	w := &write{envelope: stamped.Next(*sw, note.void), key: keyOf(sw.Name), neededFor: sw.Window.From.Until(sw.Entry.Ends())}
	w.data = w.envelope.Append(nil)
	// The message also has the replaced value, which stays valid if the swap does not
	// count. So the server keeps the message as long as one of the two values is needed.
	w.keepFor = max(w.neededFor, note.neededFor, 0)
	m := nats.NewMsg(s.putPrefix + w.key)
	m.Data = w.data
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(sw.Version, 10)}
	if c := s.bucket.config.Load(); c != nil && c.AllowMsgTTL {
		m.Header[jetstream.MsgTTLHeader] = []string{strconv.FormatInt(int64((w.keepFor+s.options.Retention)/time.Second)+1, 10)}
	}
	stamps, stop := s.subscribeToStamps(w.key)
	defer stop()
	var err error
	w.sent = time.Now()
	w.sequence, err = s.publish(ctx, m)
	w.acked = time.Now()
	switch {
	case isWrongSequence(err):
		return swap.Swapped{}, nil
	case codeOf(err) == codeNoMessageTTL: // another tool has created the bucket again
		s.bucket.forgetConfig()
		return swap.Swapped{}, nil
	case errors.Is(err, nats.ErrNoResponders) && s.bucket.undeliveredSwaps.Add(1) < maxUndeliveredSwaps:
		s.clock.RecordOutside(sw.Window) // no server received the swap, because there is no leader or no bucket
		return swap.Swapped{OutsideWindow: true}, nil
	case err != nil:
		return swap.Swapped{}, err
	}
	s.bucket.undeliveredSwaps.Store(0)
	done, err := s.swapResult(ctx, w, stamps)
	if err == nil && done.Done {
		s.sendSignals(sw.Signals)
	}
	return done, err
}

// checkSize returns an error if the bytes that a swap reserves do not fit. A message has
// room for two values: the new one and the previous one.
func (s *store) checkSize(sw *swap.Swap) error {
	limit, err := s.nc.MaxPayload(), nats.ErrMaxPayload
	if c := s.bucket.config.Load(); c != nil && c.MaxMsgSize > 0 && int64(c.MaxMsgSize) < limit {
		limit, err = int64(c.MaxMsgSize), errTooBig
	}
	if sw.ReserveBytes == 0 || limit <= 0 || int64(2*(len(sw.Value)+sw.ReserveBytes)) <= limit {
		return nil
	}
	return s.driverError(err)
}

// errTooBig is the server's error for a message that is too big for the bucket.
var errTooBig = &jetstream.APIError{ErrorCode: codeTooBig, Description: "message size exceeds maximum allowed"}

// publish stores a message, and returns its sequence.
func (s *store) publish(ctx context.Context, m *nats.Msg) (sequence uint64, err error) {
	s.writes.recordRequest(time.Now())
	defer func() { s.recordResponse(&s.writes, err) }()
	watchdog := time.AfterFunc(reconnectAfter, func() { s.recordResponse(&s.writes, errNoAnswer) })
	defer watchdog.Stop()
	r, err := s.send(ctx, m)
	switch {
	case err != nil:
		return 0, err
	case r.Sequence == 0:
		return 0, s.driverError(errors.New("the acknowledgement has no sequence"))
	}
	return r.Sequence, nil
}

// swapResult finds out whether an acknowledged write counts, or counted until a later
// write replaced it. That depends on its stamp. swapResult waits for the stamp, or reads
// the message, because the acknowledgement does not have the stamp.
func (s *store) swapResult(ctx context.Context, w *write, stamps <-chan *nats.Msg) (result swap.Swapped, err error) {
	last, counts := &w.message, true
	if w.stamp = s.receiveStamp(ctx, stamps, w.sequence); w.stamp == 0 {
		if last, err = s.readLast(ctx, w.key, w.sequence); err != nil {
			return result, err
		}
	}
	isOwn := last.sequence == w.sequence
	switch {
	case isOwn && !bytes.Equal(last.data, w.data): // the bucket has lost this write
		return result, s.driverError(errGone)
	case isOwn:
		counts = w.envelope.InsideWindow(last.stamp)
	case len(last.data) == 0: // a tool has deleted the key since
	default: // the envelope of a later write shows whether this write counted
		e, err := stamped.Decode(last.data)
		if err != nil {
			return result, err
		}
		known := false
		if counts, known = e.Counted(w.sequence); !known {
			return result, s.driverError(errReplaced)
		}
	}
	if counts {
		s.clock.RecordInside(w.envelope.Window)
		result = swap.Swapped{Done: true, Version: w.sequence, StoreState: loadNote{receivedAt: w.acked, void: w.envelope.VoidVersions, neededFor: w.neededFor}}
	} else {
		s.clock.RecordOutside(w.envelope.Window)
		result = swap.Swapped{OutsideWindow: true, HasStored: true}
		result.Stored, err = last.stored(w.acked)
	}
	if isOwn {
		s.clock.Learn(last.stamp, w.sent, w.acked)
	}
	return result, err
}
