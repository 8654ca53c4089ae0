package natslock

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable/optimistic"
)

// crowded returns an error for a claim that joins an entry which has no room for it. A
// message has the new value and the one before it.
func (s *store) crowded(swap *optimistic.Swap) error {
	most, err := s.nc.MaxPayload(), nats.ErrMaxPayload
	if c := s.bucket.config.Load(); c != nil && c.MaxMsgSize > 0 && int64(c.MaxMsgSize) < most {
		most, err = int64(c.MaxMsgSize), errTooBig
	}
	if swap.Spare == 0 || most <= 0 || int64(2*(len(swap.Value)+swap.Spare)) <= most {
		return nil
	}
	return s.failed(err)
}

// errTooBig is what the server says of a message that is too big for the bucket.
var errTooBig = &jetstream.APIError{ErrorCode: codeTooBig, Description: "message size exceeds maximum allowed"}
