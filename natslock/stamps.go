package natslock

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable"
)

const (
	// If maxMissedStamps consecutive stamps do not arrive, the driver subscribes to no
	// more stamps until the server has told it the time again, or the connection changes.
	maxMissedStamps = 3

	// stampTimeout is the time for which the driver waits for a stamp, which should
	// arrive before the acknowledgement.
	stampTimeout = 20 * time.Millisecond
)

// stampPrefix begins the subjects of a bucket's stamps. A stamp tells a writer the time
// at which the server has stored its message: in a bucket that natslock has created, the
// leader sends the headers of each stored message to a subject for the message's key,
// before it acknowledges the message. If no stamp arrives, because a right is missing or
// a message is lost, the writer reads the message back, as in a bucket that another tool
// has created. A bucket whose configuration has another prefix counts as such a bucket.
func (s *store) stampPrefix() string { return "_PAWL." + s.options.Bucket + "." }

// sendsStamps reports whether the leader of a bucket with this configuration sends
// stamps.
func (s *store) sendsStamps(c *jetstream.StreamConfig) bool {
	return c.RePublish != nil && c.RePublish.Destination == s.stampPrefix()+">"
}

// subscribeToStamps returns a channel that receives the stamps of a key until stop is
// called, or nil if none will arrive.
func (s *store) subscribeToStamps(key string) (stamps chan *nats.Msg, stop func()) {
	if c := s.bucket.config.Load(); c != nil && s.sendsStamps(c) && s.missedStamps.Load() < maxMissedStamps {
		stamps = make(chan *nats.Msg, 64)
		if sub, err := s.nc.ChanSubscribe(s.stampPrefix()+key, stamps); err == nil {
			return stamps, func() { _ = sub.Unsubscribe() } // an error means that the connection is closed
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
	timer := time.NewTimer(stampTimeout)
	defer timer.Stop()
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
		case <-timer.C:
			s.missedStamps.Add(1)
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}
