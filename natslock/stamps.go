package natslock

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable"
)

// stamps receive the stamp of a swap without a request. In a bucket that natslock has
// made, the leader sends the headers of each stored message to a subject for the
// message's key, before it acknowledges the message. The writer listens there meanwhile.
// If no stamp arrives, because a right is missing or a message is lost, the writer reads
// the message, as it does in a bucket that others have made.
type stamps struct {
	missed atomic.Int32 // consecutive stamps that did not arrive, on this connection
}

const (
	// The driver stops listening after maxMissed consecutive stamps that did not arrive.
	maxMissed = 3

	// stampTimeout is the time for which the driver waits for a stamp that should be
	// there already.
	stampTimeout = 20 * time.Millisecond
)

// stampPrefix begins the subjects of a bucket's stamps.
func (s *store) stampPrefix() string { return "_PAWL." + s.o.Bucket + "." }

// A stampListener receives the stamps of a key. A nil listener receives nothing.
type stampListener struct {
	s     *store
	sub   *nats.Subscription
	heard chan *nats.Msg
}

func (s *store) listenForStamp(key string) *stampListener {
	c := s.bucket.config.Load()
	if c == nil || c.RePublish == nil || c.RePublish.Destination != s.stampPrefix()+">" || s.stamps.missed.Load() >= maxMissed {
		return nil
	}
	l := &stampListener{s: s, heard: make(chan *nats.Msg, 64)}
	var err error
	if l.sub, err = s.nc.ChanSubscribe(s.stampPrefix()+key, l.heard); err != nil {
		return nil
	}
	return l
}

func (l *stampListener) stop() {
	if l != nil {
		_ = l.sub.Unsubscribe() // at worst the connection is closed already
	}
}

// stampOf waits for the stamp of the message that was acknowledged with this sequence.
func (l *stampListener) stampOf(ctx context.Context, sequence uint64) (stamp locktable.Instant, ok bool) {
	if l == nil {
		return 0, false
	}
	late := time.NewTimer(stampTimeout)
	defer late.Stop()
	for {
		select {
		case m := <-l.heard:
			if m.Header.Get(jetstream.SequenceHeader) != strconv.FormatUint(sequence, 10) {
				continue // the stamp of another swap of this key
			}
			t, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
			if err != nil {
				return 0, false
			}
			l.s.stamps.missed.Store(0)
			return locktable.At(t), true
		case <-late.C:
			l.s.stamps.missed.Add(1)
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
	}
}
