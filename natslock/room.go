package natslock

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// spare is what a claim that joins an entry leaves of a message: for the value of a name
// in both parts of the envelope, the void versions, and the header.
const spare = 4 << 10

// crowded returns an error for a claim that joins an entry which has no room for it. A
// message has the new value and the one before it. So if a claim could fill a message,
// the next renewal would not fit, nor would the release: a crowd would cost the holder
// its lease, and keep the name closed.
func (s *store) crowded(swap *optimistic.Swap) error {
	most, err := s.nc.MaxPayload(), nats.ErrMaxPayload
	if c := s.bucket.config.Load(); c != nil && c.MaxMsgSize > 0 && int64(c.MaxMsgSize) < most {
		most, err = int64(c.MaxMsgSize), errTooBig
	}
	if most <= 0 || int64(2*len(swap.Value))+min(spare, most/4) <= most {
		return nil
	}
	was := &locktable.Entry{}
	if e, damaged := locktable.Decode(swap.Was); damaged == nil { // else there was none
		was = e
	}
	if people(swap.Entry) > people(was) {
		return s.trouble(err)
	}
	return nil
}

func people(e *locktable.Entry) int { return len(e.Holders) + len(e.Queue) }

// errTooBig is what the server says of a message that is too big for the bucket.
var errTooBig = &jetstream.APIError{ErrorCode: codeTooBig, Description: "message size exceeds maximum allowed"}
